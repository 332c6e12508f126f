"""Whose changes are kept in the audit log: the fleet, people and their tokens. Secrets are left out."""

from auditlog.registry import auditlog
from django.contrib.auth.models import Group, User

from planner.models import ApiToken, GpuType, Host, ModelSpec


def register_rows() -> None:
    """Have the audit log follow these rows."""
    auditlog.register(ModelSpec, exclude_fields=["config", "updated_at"])
    auditlog.register(GpuType, exclude_fields=["updated_at"])
    auditlog.register(Host, exclude_fields=["updated_at"])
    auditlog.register(User, exclude_fields=["password", "last_login"], m2m_fields={"groups", "user_permissions"})
    auditlog.register(Group, m2m_fields={"permissions"})
    auditlog.register(ApiToken, exclude_fields=["digest", "token_key"])
