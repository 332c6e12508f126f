"""The life of an API token: made, shown once, used, expired, revoked."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from planner.accounts import token_create, token_revoke
from planner.core.errors import BadInput
from planner.models import ApiToken

ME = "/api/v1/me"


def me(text, scheme="Token"):
    return APIClient().get(ME, headers={"Authorization": f"{scheme} {text}"})


@pytest.mark.parametrize("scheme", ["Token", "token", "Bearer"])
def test_a_token_says_who_asks(bob, scheme):
    _, text = token_create(user=bob, name="ci")
    answer = me(text, scheme)
    assert answer.status_code == 200
    assert answer.json()["username"] == "bob"
    assert answer.json()["groups"] == ["viewer"]


def test_the_text_of_a_token_is_kept_nowhere(bob):
    _, text = token_create(user=bob, name="ci")
    row = ApiToken.objects.values().get()
    assert text.startswith("plan_")
    assert all(text not in str(value) for value in row.values())


def test_a_person_has_several_and_revoking_one_leaves_the_others(bob):
    first, first_text = token_create(user=bob, name="laptop")
    _, second_text = token_create(user=bob, name="ci")
    token_revoke(token=first, by=bob)
    assert me(first_text).status_code == 401
    assert me(second_text).status_code == 200


def test_an_expired_token_is_refused_with_the_day_and_stays_listed(bob):
    token, text = token_create(user=bob, name="ci", days=1)
    ApiToken.objects.filter(pk=token.pk).update(expiry=timezone.now() - timedelta(seconds=1))
    answer = me(text)
    assert answer.status_code == 401
    assert "expired on" in answer.json()["detail"]
    assert ApiToken.objects.filter(pk=token.pk).exists()


def test_the_token_of_a_closed_account_is_refused(bob):
    _, text = token_create(user=bob, name="ci")
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert me(text).status_code == 401


@pytest.mark.parametrize(
    "header", ["Token", "Token a b", "Token \xff\xfe", "Bearer nothing", "Token plan_", "Basic YTpi"]
)
def test_a_header_that_is_no_token_of_ours_is_refused(db, header):
    answer = APIClient().get(ME, headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Token"
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("days", [0, -1, 366, 10**9])
def test_a_token_lives_between_a_day_and_a_year(bob, days):
    with pytest.raises(BadInput, match="days"):
        token_create(user=bob, name="ci", days=days)


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "a\x00b"])
def test_a_token_says_what_uses_it(bob, name):
    with pytest.raises(BadInput, match="name"):
        token_create(user=bob, name=name)


def test_nobody_revokes_the_token_of_somebody_else(alice, bob):
    token, text = token_create(user=bob, name="ci")
    with pytest.raises(BadInput, match="somebody else"):
        token_revoke(token=token, by=alice)
    assert me(text).status_code == 200


def test_an_admin_revokes_any_token(adam, bob):
    token, text = token_create(user=bob, name="ci")
    token_revoke(token=token, by=adam)
    assert me(text).status_code == 401


def run(*args):
    out, err = StringIO(), StringIO()
    call_command("token", *args, stdout=out, stderr=err)
    return out.getvalue().strip(), err.getvalue()


def test_the_command_prints_the_token_alone_so_that_scripts_can_take_it(bob):
    text, said = run("bob", "--days", "3", "--name", "nightly")
    assert me(text).json()["username"] == "bob"
    assert "'nightly'" in said
    expiry = ApiToken.objects.get().expiry
    assert timedelta(days=2) < expiry - timezone.now() <= timedelta(days=3)


def test_the_command_can_make_an_account_for_a_machine_that_no_password_opens(db):
    text, _ = run("ci-robot", "--group", "planner")
    assert me(text).json()["groups"] == ["planner"]
    assert not User.objects.get(username="ci-robot").has_usable_password()


def test_the_command_says_what_is_wrong(db):
    with pytest.raises(CommandError, match="nobody is called 'nobody'") as refused:
        run("nobody")
    assert refused.value.returncode == 2
