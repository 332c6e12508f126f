"""The API against its own schema: generated requests, sound and unsound, and never an answer that it does not state."""

import pytest
import schemathesis
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from planner import hub
from planner.accounts import token_create
from planner.api.throttles import ScopedCountThrottle
from planner.core.errors import Unknown
from planner.wsgi import application
from tests.factories import a_host, a_plan

BOUNDED = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
STATED = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.ignored_auth,
]


def generated():
    return SchemaGenerator(api_version="v1").get_schema(request=None, public=True)


schema = schemathesis.openapi.from_dict(generated())
schema.app = application


@pytest.fixture
def token(alice, monkeypatch, wsgi):
    """Alice's token, with rows to find, no way to the hub and no limit of requests."""
    a_host(alice, gpu_type=a_plan(alice) and "test-80gb")
    monkeypatch.setattr(hub, "fetch_model", _unreachable)
    monkeypatch.setattr(ScopedCountThrottle, "allow_request", lambda *_: True)
    return token_create(user=alice, name="contract")[1]


def _unreachable(repo_id, **_):
    raise Unknown(field="model", message=f"{repo_id} cannot be asked for here.", fix="give its config.json")


@schema.parametrize()
@BOUNDED
def test_every_answer_is_one_that_the_schema_states(case, token):
    # An empty parameter is a filter left open, as a form sends it; a body has no such excuse.
    strictly = [checks.negative_data_rejection] if case.method in {"POST", "PATCH"} else []
    case.call_and_validate(headers={"Authorization": f"Token {token}"}, checks=[*STATED, *strictly])


def test_the_schema_is_valid_openapi_and_says_who_may_ask():
    schema = generated()
    validate_schema(schema)
    assert schema["openapi"].startswith("3.1")
    operations = [operation for path in schema["paths"].values() for operation in path.values()]
    assert all({"token": []} in operation["security"] for operation in operations)
    assert all("401" in operation["responses"] for operation in operations)


def test_the_schema_shows_examples_of_what_people_ask():
    body = generated()["paths"]["/api/v1/estimate"]["post"]["requestBody"]["content"]["application/json"]
    assert len(body["examples"]) >= 3
