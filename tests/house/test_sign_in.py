"""The link in the terminal, and the two addresses that need no sign-in because machines ask them."""

from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.utils import timezone

from planner import health, sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin():
    return sign_in.first_admin()


def follow(client, link):
    return client.get(link.removeprefix("http://here"))


def test_the_first_link_makes_an_admin_whom_no_password_lets_in(admin):
    assert (admin.username, admin.is_staff, admin.has_usable_password()) == ("admin", True, False)
    assert sign_in.first_admin() == admin


def test_nobody_is_made_where_somebody_is_there_already(alice):
    assert sign_in.first_admin() is None
    assert User.objects.count() == 1


def test_a_link_signs_in_and_then_no_longer(admin, client):
    link = sign_in.link_for(admin, address="http://here")
    assert follow(client, link).url == "/"
    assert int(client.session["_auth_user_id"]) == admin.pk
    client.logout()
    assert follow(client, link).url == "/accounts/login/"
    assert "_auth_user_id" not in client.session


def test_a_spent_link_says_so_on_the_sign_in_page(client):
    page = client.get("/accounts/link/spent/", follow=True)
    assert "was used or is too old" in page.content.decode()


def test_a_link_lives_for_an_hour(admin):
    link = sign_in.link_for(admin, address="")
    token = link.split("/")[-2]
    with time_machine.travel(timezone.now() + timedelta(seconds=sign_in.SECONDS_VALID + 1)):
        assert sign_in.user_of(token) is None
    assert sign_in.user_of(token) == admin


def test_a_link_ends_when_its_person_signs_in_another_way(admin, client):
    token = sign_in.link_for(admin, address="").split("/")[-2]
    client.force_login(admin)
    assert sign_in.user_of(token) is None


def test_a_link_of_somebody_who_left_does_nothing(admin):
    token = sign_in.link_for(admin, address="").split("/")[-2]
    User.objects.update(is_active=False)
    assert sign_in.user_of(token) is None


def test_ready_says_which_part_does_not_answer_and_nothing_more(client, monkeypatch):
    def refuse():
        raise ConnectionRefusedByBroker("redis://:secret@broker")

    class ConnectionRefusedByBroker(health.redis.RedisError):
        pass

    monkeypatch.setitem(health.CHECKS, "broker", refuse)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "failing", "database": "ok", "broker": "ConnectionRefusedByBroker"}
