"""A model by its Hugging Face id; what the hub says is played by a stand-in, for `tests/readers` asks a real server."""

import pytest

from planner import hub
from planner.core.errors import BadInput, Unknown
from planner.hub import HubModel
from planner.models import ModelSpec
from tests.factories import a_config, a_model, api_of

FROM_HUB = "/api/v1/models/from-hub"


@pytest.fixture
def asked(monkeypatch):
    """What was asked of the hub, which knows one model."""
    calls = []

    def fetch_model(repo_id, *, token=None):
        calls.append((repo_id, token))
        if repo_id == "no name":
            raise BadInput(field="model", message="that is no repository's name.", fix="write owner/name")
        if repo_id != "acme/from-hub":
            raise Unknown(field="model", message=f"the hub has no model {repo_id}.", fix="check the name")
        return HubModel(repo_id=repo_id, config=a_config(), source="https://hub.example/acme/from-hub")

    monkeypatch.setattr(hub, "fetch_model", fetch_model)
    return calls


def add(user, **body):
    return api_of(user).post(FROM_HUB, body, format="json")


def test_its_configuration_is_fetched_and_kept_with_its_source(paula, asked):
    made = add(paula, repo_id=" acme/from-hub ")
    assert made.status_code == 201, made.content
    assert made.json()["origin"] == "hub"
    assert made.json()["confidence"] == "high"
    assert made.json()["source"] == "https://hub.example/acme/from-hub"
    assert ModelSpec.objects.core_named("acme/from-hub").num_layers == 4


def test_the_token_serves_this_one_request(paula, asked):
    made = add(paula, repo_id="acme/from-hub", token="hf_secret")
    assert asked == [("acme/from-hub", "hf_secret")]
    assert "hf_secret" not in made.content.decode()
    assert "hf_secret" not in str(ModelSpec.objects.values().get())


@pytest.mark.parametrize(("repo_id", "status"), [("acme/nothing", 422), ("no name", 400)])
def test_what_the_hub_does_not_give_is_told_beside_the_field(paula, asked, repo_id, status):
    answer = add(paula, repo_id=repo_id)
    assert answer.status_code == status
    (error,) = answer.json()["errors"]
    assert error["field"] == "repo_id"
    assert not ModelSpec.objects.exists()


def test_a_model_that_is_there_is_not_added_twice(paula, asked):
    a_model(paula, "acme/from-hub")
    assert add(paula, repo_id="acme/from-hub").status_code == 400
    assert ModelSpec.objects.count() == 1


def test_a_viewer_does_not_make_us_ask_the_hub(bob, asked):
    assert add(bob, repo_id="acme/from-hub").status_code == 403
    assert asked == []
