"""Account: one's groups, one's keys to the API, one's password."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from planner.accounts import token_create, token_revoke
from planner.core.errors import PlanningError
from planner.forms import NewPasswordForm, TokenForm
from planner.models import ApiToken
from planner.pages.answer import SignedInRequest, answer


@require_safe
@never_cache
def account(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Who one is here, and one's tokens; a token's text is never among them."""
    return _account_page(request, as_json=as_json)


@require_POST
@never_cache
def token_new(request: SignedInRequest) -> HttpResponse:
    """Make a token and show its text, this once: the answer to the POST is the only page that ever holds it."""
    form = TokenForm(request.POST)
    if form.is_valid():
        try:
            token, text = token_create(user=request.user, **form.cleaned_data)
        except PlanningError as fault:
            form.refuse(fault)
        else:
            return _account_page(request, new_token=token, new_token_text=text, status=201)
    return _account_page(request, token_form=form, status=422)


@require_POST
def token_end(request: SignedInRequest, pk: str) -> HttpResponse:
    """Revoke one of one's own tokens."""
    token = get_object_or_404(ApiToken, pk=pk, user=request.user)
    token_revoke(token=token, by=request.user)
    messages.success(request, f"The token {token.name} is revoked; what used it is signed out now.")
    return redirect("account")


@require_POST
@never_cache
@sensitive_post_parameters()
def password_change(request: HttpRequest) -> HttpResponse:
    """Change one's password and stay signed in here."""
    form = NewPasswordForm(request.user, request.POST)
    if not form.is_valid():
        return _account_page(request, password_form=form, status=422)
    update_session_auth_hash(request, form.save())
    messages.success(request, "The password is changed; other browsers are signed out.")
    return redirect("account")


def _account_page(request: HttpRequest, *, as_json: bool = False, status: int = 200, **drawn_with: Any) -> HttpResponse:
    tokens = ApiToken.objects.filter(user=request.user).order_by("-created")
    data = {
        "username": request.user.get_username(),
        "groups": sorted(request.user.groups.values_list("name", flat=True)),
        "tokens": [_token(token) for token in tokens],
    }
    drawn_with = {
        "token_form": TokenForm(),
        "password_form": NewPasswordForm(request.user),
        "token_rows": tokens,
        "now": timezone.now(),
        **drawn_with,
    }
    return answer(request, "planner/account.html", data, as_json=as_json, status=status, drawn_with=drawn_with)


def _token(token: ApiToken) -> dict[str, Any]:
    expiry = token.expiry.isoformat() if token.expiry else None
    return {"name": token.name, "created": token.created.isoformat(), "expires": expiry, "starts_with": token.token_key}
