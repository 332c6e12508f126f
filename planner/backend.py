"""How Django learns what a person may do."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Permission, User
from django.db.models import Q


class OneQueryBackend(ModelBackend):
    """Django's own backend, which asks for a person's and for the groups' permissions apart: here in one query."""

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Return `app.permission` for everything that the person may do, kept with the person as Django does."""
        if not isinstance(user_obj, User) or not user_obj.is_active or user_obj.is_superuser or obj is not None:
            return super().get_all_permissions(user_obj, obj)
        if not hasattr(user_obj, "_perm_cache"):
            theirs = Permission.objects.filter(Q(user=user_obj) | Q(group__user=user_obj)).order_by()
            names = theirs.values_list("content_type__app_label", "codename")
            user_obj._perm_cache = {f"{label}.{codename}" for label, codename in names}  # type: ignore[attr-defined]
        return user_obj._perm_cache  # type: ignore[attr-defined]
