"""Who changed what: the fleet, people and tokens leave a trace."""

import pytest
from auditlog.models import LogEntry

from planner.accounts import token_create, token_revoke
from planner.models import ApiToken, GpuType, Host, ModelSpec
from planner.services import row_change
from tests.factories import a_gpu_type, a_host, a_model, api_of


def entries(row):
    return [
        (entry.get_action_display(), entry.actor.username)
        for entry in LogEntry.objects.get_for_object(row).order_by("id")
    ]


@pytest.mark.parametrize("make", [a_model, a_gpu_type, a_host])
def test_adding_a_row_says_who_did(alice, make):
    assert entries(make(alice)) == [("create", "alice")]


def test_a_change_says_what_it_was_before(alice, adam):
    host = a_host(alice, note="old")
    row_change(user=adam, row=host, note="new")
    entry = LogEntry.objects.get_for_object(host).latest("id")
    assert entry.actor == adam
    assert entry.changes == {"note": ["old", "new"]}


def test_a_change_through_a_token_is_its_owners(alice):
    api_of(alice).post("/api/v1/models", {"name": "acme/x", "config": {"architectures": ["X"]}}, format="json")
    assert entries(ModelSpec.objects.get()) == [("create", "alice")]


def test_making_and_revoking_a_token_is_kept_without_its_secret(alice):
    token, text = token_create(user=alice, name="ci")
    key, digest = token.token_key, token.digest
    token_revoke(token=token, by=alice)
    kept = LogEntry.objects.get_for_model(ApiToken)
    assert [entry.get_action_display() for entry in kept.order_by("id")] == ["create", "delete"]
    assert all(secret not in str(entry.changes) for entry in kept for secret in (text, key, digest))


def test_a_new_person_is_kept_without_the_password(adam):
    (entry,) = LogEntry.objects.get_for_object(adam).filter(action=LogEntry.Action.CREATE)
    assert "username" in entry.changes
    assert "password" not in entry.changes


def test_what_failed_leaves_no_trace(alice):
    a_gpu_type(alice)
    before = LogEntry.objects.count()
    answer = api_of(alice).post("/api/v1/hosts", {"name": "n", "gpu_type": "nothing"}, format="json")
    assert answer.status_code == 400
    assert LogEntry.objects.exclude(content_type__model="apitoken").count() == before
    assert not Host.objects.exists()
    assert GpuType.objects.count() == 1
