"""Four groups, and what each may do through the API."""

import pytest

from planner.models import Host
from tests.factories import a_config, a_gpu_type, a_host, a_model, a_person, a_plan, api_of, the_inputs

LISTS = ["/api/v1/models", "/api/v1/gpu-types", "/api/v1/hosts", "/api/v1/plans"]


def a_machine(number):
    return {"name": f"node-{number}", "gpu_type": "test-80gb"}


@pytest.fixture
def rows(alice):
    a_model(alice)
    a_gpu_type(alice)
    return a_plan(alice)


def attempts(user, *, adding):
    """What this person gets when they look, ask, and add one of each."""
    api = api_of(user)
    name = user.username
    gpu = {"name": f"GPU of {name}", **dict.fromkeys(("total_bytes", "total_low_bytes", "total_high_bytes"), 2**36)}
    return {
        "look": {api.get(path).status_code for path in LISTS},
        "estimate": api.post("/api/v1/estimate", the_inputs(), format="json").status_code,
        "save": api.post("/api/v1/plans", {"inputs": the_inputs()}, format="json").status_code,
        "model": api.post("/api/v1/models", {"name": f"acme/{name}", "config": a_config()}, format="json").status_code,
        "gpu": api.post("/api/v1/gpu-types", gpu, format="json").status_code,
        "host": api.post("/api/v1/hosts", a_machine(name), format="json").status_code,
    }


@pytest.mark.parametrize(
    ("group", "look", "plan", "fleet"),
    [
        (None, 403, 403, 403),
        ("viewer", 200, 403, 403),
        ("planner", 200, 201, 403),
        ("operator", 200, 201, 201),
        ("admin", 200, 201, 201),
    ],
)
def test_each_group_may_do_what_it_is_for(rows, group, look, plan, fleet):
    found = attempts(a_person("somebody", group=group), adding=True)
    assert found == {
        "look": {look},
        "estimate": look,
        "save": plan,
        "model": plan,
        "gpu": fleet,
        "host": fleet,
    }


def test_only_operators_and_admins_remove_rows(rows, alice, paula):
    host = a_host(alice, gpu_type="test-80gb")
    assert api_of(paula).delete(f"/api/v1/hosts/{host.pk}").status_code == 403
    assert api_of(alice).delete(f"/api/v1/hosts/{host.pk}").status_code == 204
    assert not Host.objects.exists()


def test_a_refusal_says_who_can_help(bob, rows):
    answer = api_of(bob).post("/api/v1/plans", {"inputs": the_inputs()}, format="json")
    assert "admin" in answer.json()["fix"]


def test_people_see_what_they_may_do(bob):
    answer = api_of(bob).get("/api/v1/me").json()
    assert answer["permissions"] == [f"planner.view_{row}" for row in ("gputype", "host", "modelspec", "plan")]
