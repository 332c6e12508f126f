"""Sign-in links: signed, valid for an hour, and used once. The terminal shows one to whoever started the service."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from planner import accounts

SALT = "planner.sign_in"
SECONDS_VALID = 60 * 60


def first_admin() -> User | None:
    """The person a link in the terminal is for: `admin`, made where nobody can sign in yet; else the first admin."""
    if not User.objects.exists():
        return accounts.user_add(name="admin", group="admin")
    return User.objects.filter(groups__name="admin", is_active=True).order_by("pk").first()


def link_for(user: User, *, address: str) -> str:
    """The address that signs this person in; it stops working at their next sign-in, whatever the way."""
    token = signing.dumps([user.pk, _last_sign_in(user)], salt=SALT)
    return address + reverse("sign_in_link", args=[token])


def user_of(token: str) -> User | None:
    """The person whose link this is, now signed in by it; None where it was used, is too old or was never ours."""
    try:
        pk, last_sign_in = signing.loads(token, salt=SALT, max_age=SECONDS_VALID)
    except signing.BadSignature:
        return None
    user = User.objects.filter(pk=pk, is_active=True).first()
    if user is None or _last_sign_in(user) != last_sign_in:
        return None
    # Of two requests at the same moment, one changes the row and the other finds it changed.
    unused = User.objects.filter(pk=pk, last_login=user.last_login)
    return user if unused.update(last_login=timezone.now()) else None


def _last_sign_in(user: User) -> str:
    return user.last_login.isoformat() if user.last_login else ""


@never_cache
@login_not_required
def follow_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign the person in and show the home page; a spent link leads to the sign-in page, which says so."""
    user = user_of(token)
    if user is None:
        messages.error(request, "This sign-in link was used or is too old. Ask for another: manage.py sign_in_link")
        return redirect("login")
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    return redirect(settings.LOGIN_REDIRECT_URL)
