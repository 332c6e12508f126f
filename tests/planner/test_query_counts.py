"""How often each answer of the API asks the database, however many rows there are."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import a_host, a_model, a_plan, api_of, the_inputs

# Of these, one finds the token with its owner, and one the permissions.
QUERIES = {
    "/api/v1/models": 4,
    "/api/v1/gpu-types": 4,
    "/api/v1/hosts": 4,
    "/api/v1/plans": 4,
    "/api/v1/models/acme--small-llama": 3,
    "/api/v1/me": 3,
}


def queries(ask):
    with CaptureQueriesContext(
        connection,
    ) as asked:
        answer = ask()
    assert answer.status_code == 200, answer.content
    return len(asked), [query["sql"] for query in asked.captured_queries]


@pytest.mark.parametrize("path", QUERIES)
def test_a_list_asks_as_often_for_many_rows_as_for_one(alice, path):
    a_plan(alice)
    a_host(alice, gpu_type="test-80gb")
    api = api_of(alice)
    few, _ = queries(lambda: api.get(path))
    for number in range(5):
        a_host(alice)
        a_model(alice, f"acme/model-{number}")
        a_plan(alice, args={"max_model_len": 1024 + number})
    many, said = queries(lambda: api.get(path))
    assert (few, many) == (QUERIES[path], QUERIES[path]), said


def test_an_estimate_reads_no_configuration_again(alice):
    a_plan(alice)
    api = api_of(alice)
    count, said = queries(lambda: api.post("/api/v1/estimate", the_inputs(), format="json"))
    assert count == 4, said
    assert not any('"config"' in sql for sql in said)
