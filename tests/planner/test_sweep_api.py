"""POST /api/v1/sweep: the same figures as single estimates, and errors that name the axis."""

import pytest

from tests.factories import a_gpu_type, a_model, api_of, the_inputs

pytestmark = pytest.mark.django_db
SWEEP = "/api/v1/sweep"


@pytest.fixture(autouse=True)
def _known(alice):
    a_model(alice), a_gpu_type(alice)


def swept(user, **axes):
    return api_of(user).post(SWEEP, {**the_inputs(), "axes": axes}, format="json")


def test_a_sweep_holds_what_each_estimate_holds(bob):
    answer = swept(bob, max_num_seqs=[8, "64"], gpu_memory_utilization=[0.5, 0.9]).json()
    assert answer["gpu_memory_utilization"] == [0.5, 0.9]
    assert [row["flags"] for row in answer["rows"]] == [{"max_num_seqs": 8}, {"max_num_seqs": 64}]
    inputs = the_inputs()
    for row in answer["rows"]:
        args = {**inputs["args"], **row["flags"], "gpu_memory_utilization": 0.9}
        alone = api_of(bob).post("/api/v1/estimate", {**inputs, "args": args}, format="json").json()
        assert row["boots"][1] == (alone["verdict"] == "fits")
        assert row["num_gpu_blocks"][1] == alone["kv_cache"]["num_gpu_blocks"]


@pytest.mark.parametrize(
    ("axes", "field"),
    [
        ({"tensor_paralel_size": [1]}, "axes.tensor_paralel_size"),
        ({"tensor_parallel_size": ["many"]}, "tensor_parallel_size"),
        ({"max_model_len": list(range(1, 10_002))}, "axes"),
        ({"model": ["a", "b"]}, "axes.model"),
    ],
)
def test_an_axis_that_cannot_be_swept_is_named(bob, axes, field):
    answer = swept(bob, **axes)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"].startswith(field)


def test_a_sweep_needs_axes(bob):
    answer = api_of(bob).post(SWEEP, the_inputs(), format="json")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "axes")
