"""Who may do what: people, their groups, and their keys to the API."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from auditlog.context import set_actor
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q

from planner.core.errors import BadInput
from planner.faults import bad_inputs
from planner.models import ApiToken

MOST_TOKEN_DAYS = 365
TOKEN_PREFIX = "plan_"  # noqa: S105 -- the public start of every token, so that a leaked one is recognised

_VIEWER = ["view_modelspec", "view_gputype", "view_host", "view_plan"]
_PLANNER = [*_VIEWER, "add_modelspec", "add_plan"]
_OPERATOR = [
    *_PLANNER,
    "delete_modelspec",
    *(f"{act}_{row}" for row in ("gputype", "host") for act in ("add", "change", "delete")),
]
PERMISSIONS = {"viewer": _VIEWER, "planner": _PLANNER, "operator": _OPERATOR}
ADMIN_MAY = (
    Q(content_type__app_label="planner", codename__in=[*_OPERATOR, "view_apitoken", "delete_apitoken"])
    | Q(content_type__app_label="auth", content_type__model="group", codename__startswith="view")
    | Q(content_type__app_label="auth", content_type__model="user") & ~Q(codename__startswith="delete")
    | Q(content_type__app_label="auditlog", codename__startswith="view")
)


def groups_ensure(*, group: Any = Group, permission: Any = Permission) -> None:
    """Give the four groups the permissions of this module; a migration passes its historical models."""
    for name, codenames in PERMISSIONS.items():
        wanted = permission.objects.filter(content_type__app_label="planner", codename__in=codenames)
        group.objects.get_or_create(name=name)[0].permissions.add(*wanted)
    group.objects.get_or_create(name="admin")[0].permissions.add(*permission.objects.filter(ADMIN_MAY))


@transaction.atomic
def user_add(*, name: str, group: str, password: str | None = None, by: User | None = None) -> User:
    """Return a new person of this group; without a password nobody can sign in with one."""
    user = User(username=name, is_staff=group == "admin")
    try:
        validate_password(password, user) if password else None
        user.set_password(password)
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        raise _about_user(error) from error
    with set_actor(by):
        user.save()
        user.groups.set([_group(group)])
    return user


def _about_user(error: ValidationError) -> BadInput:
    if hasattr(error, "error_dict"):
        return bad_inputs(error)
    return BadInput(field="password", message=" ".join(error.messages), fix="choose a longer one of several words")


def _group(name: str) -> Group:
    found = Group.objects.filter(name=name).first()
    if found is None:
        raise BadInput(field="group", message=f"there is no group {name!r}.", fix=f"choose one of {_names()}")
    return found


def _names() -> str:
    return ", ".join(Group.objects.order_by("name").values_list("name", flat=True))


def user_named(name: str) -> User:
    """Return the person of this name, or raise BadInput."""
    found = User.objects.filter(username=name).first()
    if found is None:
        raise BadInput(field="user", message=f"nobody is called {name!r} here.", fix="add the person first")
    return found


def token_create(*, user: User, name: str, days: int = 90, by: User | None = None) -> tuple[ApiToken, str]:
    """Return a new token and its text, which is kept nowhere: this is the one time to show it."""
    name = name.strip()
    if not 0 < len(name) <= ApiToken.NAME_LENGTH or "\x00" in name:
        raise BadInput(field="name", message="a token needs a name of 1 to 100 characters.", fix="say what uses it")
    if not 1 <= days <= MOST_TOKEN_DAYS:
        limit = f"between 1 and {MOST_TOKEN_DAYS}"
        raise BadInput(field="days", message=f"a token lives {limit} days, not {days}.", fix=f"give a number {limit}")
    with set_actor(by or user):
        token, text = ApiToken.objects.create(user=user, name=name, expiry=timedelta(days=days), prefix=TOKEN_PREFIX)
    return token, text


def token_revoke(*, token: ApiToken, by: User) -> None:
    """End a token now: one's own, or anyone's for those who may delete tokens."""
    if token.user_id != by.pk and not by.has_perm("planner.delete_apitoken"):
        raise BadInput(field="token", message="it belongs to somebody else.", fix="ask its owner or an admin")
    with set_actor(by):
        token.delete()


def permissions_of(user: User) -> Iterable[str]:
    """Return what a person may do, as `app.permission`."""
    return sorted(user.get_all_permissions())
