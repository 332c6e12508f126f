"""Account: one's groups, one's keys to the API, one's password."""

import re
from datetime import timedelta

import pytest

from planner import accounts
from planner.models import ApiToken
from tests.factories import api_of


@pytest.fixture
def bobs(client, bob):
    client.force_login(bob)
    return client


def make_token(client, **form):
    return client.post("/account/tokens", {"name": "nightly CI", "days": "30", **form})


def test_a_token_is_shown_once_and_opens_the_api(bobs, client):
    answer = make_token(bobs)
    assert answer.status_code == 201
    assert "no-store" in answer["Cache-Control"]
    text = re.search(r'<pre id="token-text">([^<]+)</pre>', answer.content.decode())[1]
    assert text not in bobs.get("/account").content.decode()
    bobs.logout()
    assert client.get("/api/v1/plans", HTTP_AUTHORIZATION=f"Bearer {text}").status_code == 200


def test_a_token_ends_when_its_maker_chose(bobs):
    make_token(bobs, days="7")
    token = ApiToken.objects.get()
    assert round((token.expiry - token.created) / timedelta(days=1)) == 7


@pytest.mark.parametrize("form", [{"name": ""}, {"days": "0"}, {"days": "4000"}, {"name": "x" * 101}])
def test_a_token_without_a_name_or_an_end_is_not_made(bobs, form):
    answer = make_token(bobs, **form)
    assert answer.status_code == 422
    assert not ApiToken.objects.exists()


def test_what_was_typed_stays_when_a_token_is_refused(bobs):
    assert 'value="nightly CI"' in make_token(bobs, days="0").content.decode()


def test_a_revoked_token_opens_nothing(bobs, bob):
    api = api_of(bob)
    token = ApiToken.objects.get()
    assert bobs.post(f"/account/tokens/{token.pk}/revoke").url == "/account"
    assert api.get("/api/v1/plans").status_code == 401


def test_nobody_sees_or_revokes_the_token_of_another(bobs, alice):
    token, _ = accounts.token_create(user=alice, name="alices own")
    assert "alices own" not in bobs.get("/account").content.decode()
    assert bobs.post(f"/account/tokens/{token.pk}/revoke").status_code == 404
    assert ApiToken.objects.filter(pk=token.pk).exists()


def test_the_data_of_the_page_never_holds_a_token(bobs, bob):
    _, text = accounts.token_create(user=bob, name="nightly CI")
    data = bobs.get("/account.json").json()
    assert data["groups"] == ["viewer"]
    assert [token["name"] for token in data["tokens"]] == ["nightly CI"]
    assert text not in str(data)


def test_a_new_password_keeps_one_signed_in(bobs, bob):
    new = "a wholly different battery"
    form = {"old_password": "correct horse battery", "new_password1": new, "new_password2": new}
    assert bobs.post("/account/password", form).url == "/account"
    assert bobs.get("/account").status_code == 200
    bob.refresh_from_db()
    assert bob.check_password(new)


def test_a_wrong_old_password_changes_nothing_and_is_told(bobs, bob):
    form = {"old_password": "wrong", "new_password1": "another battery 1", "new_password2": "another battery 1"}
    answer = bobs.post("/account/password", form)
    assert answer.status_code == 422
    assert 'id="id_old_password_error"' in answer.content.decode()
    bob.refresh_from_db()
    assert bob.check_password("correct horse battery")


def test_charlie_reads_why_most_pages_are_closed(client, charlie):
    client.force_login(charlie)
    assert "In no group yet" in client.get("/account").content.decode()


def test_acting_needs_a_post(bobs, bob):
    token, _ = accounts.token_create(user=bob, name="nightly CI")
    for address in ("/account/tokens", f"/account/tokens/{token.pk}/revoke", "/account/password"):
        assert bobs.get(address).status_code == 405
