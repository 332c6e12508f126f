"""GPU types, hosts and models through the API."""

import pytest

from planner.models import GpuType, Host, ModelSpec, Origin
from tests.factories import a_config, a_gpu_type, a_host, a_model, api_of

GPU_TYPES, HOSTS, MODELS = "/api/v1/gpu-types", "/api/v1/hosts", "/api/v1/models"
BYTES = 80 * 2**30


def a_gpu(**columns):
    return {"name": "New 80GB", "total_bytes": BYTES, "total_low_bytes": BYTES, "total_high_bytes": BYTES, **columns}


def errors(answer):
    assert answer.status_code == 400, answer.content
    return {error["field"]: f"{error['message']} {error['fix']}" for error in answer.json()["errors"]}


def test_a_gpu_type_is_added_read_changed_and_removed(alice):
    api = api_of(alice)
    made = api.post(GPU_TYPES, a_gpu(compute_capability="9.0", aliases=["NVIDIA New"]), format="json")
    assert made.status_code == 201
    assert made.json()["slug"] == "new-80gb"
    assert made.json()["origin"] == "hand"
    assert api.get(f"{GPU_TYPES}/new-80gb").json() == made.json()
    changed = api.patch(f"{GPU_TYPES}/new-80gb", {"note": "lent"}, format="json")
    assert changed.json()["note"] == "lent"
    assert api.delete(f"{GPU_TYPES}/new-80gb").status_code == 204
    assert api.get(f"{GPU_TYPES}/new-80gb").status_code == 404


@pytest.mark.parametrize("name", ["test-80gb", "TEST 80GB", "NVIDIA Test-80GB"])
def test_a_gpu_is_found_by_slug_and_by_the_name_that_nvidia_smi_prints(alice, name):
    a_gpu_type(alice, aliases=["NVIDIA Test-80GB"])
    assert GpuType.objects.core_named(name).slug == "test-80gb"


def test_the_arithmetic_sees_a_changed_row_at_once(alice):
    row = a_gpu_type(alice)
    assert row.core().compute_capability == (8, 0)
    api_of(alice).patch(f"{GPU_TYPES}/{row.slug}", {"compute_capability": "9.0"}, format="json")
    assert GpuType.objects.core_named(row.slug).compute_capability == (9, 0)


@pytest.mark.parametrize(
    ("columns", "field", "said"),
    [
        ({"name": "TEST 80gb"}, "name", "already exists"),
        ({"name": ""}, "name", "blank"),
        ({"total_low_bytes": BYTES + 1}, "", "between its low and its high"),
        ({"total_bytes": 0}, "total_bytes", "greater than or equal to 1"),
        ({"total_bytes": 2**70}, "total_bytes", "less than or equal to"),
        ({"compute_capability": "eight"}, "compute_capability", "8.0"),
        ({"device_type": "tpu"}, "device_type", "not a valid choice"),
        ({"aliases": "NVIDIA"}, "aliases", "list"),
    ],
)
def test_a_bad_gpu_type_names_its_field(alice, columns, field, said):
    a_gpu_type(alice)
    found = errors(api_of(alice).post(GPU_TYPES, a_gpu(**columns), format="json"))
    assert list(found) == [field]
    assert said in found[field]


def test_what_the_catalog_brings_is_neither_changed_nor_removed_by_hand(alice):
    row = a_gpu_type(alice)
    GpuType.objects.update(origin=Origin.CATALOG)
    model = a_model(alice)
    ModelSpec.objects.update(origin=Origin.CATALOG)
    api = api_of(alice)
    assert "catalog" in errors(api.patch(f"{GPU_TYPES}/{row.slug}", {"note": "x"}, format="json"))["name"]
    assert "catalog" in errors(api.delete(f"{GPU_TYPES}/{row.slug}"))["name"]
    assert "catalog" in errors(api.delete(f"{MODELS}/{model.slug}"))["model"]


def test_a_gpu_type_that_hosts_have_stays(alice):
    host = a_host(alice)
    found = errors(api_of(alice).delete(f"{GPU_TYPES}/{host.gpu_type.slug}"))
    assert host.name in found["gpu_type"]
    assert GpuType.objects.count() == 1


def test_a_host_names_its_gpus_as_nvidia_smi_does(alice):
    a_gpu_type(alice, aliases=["NVIDIA Test-80GB"])
    api = api_of(alice)
    made = api.post(HOSTS, {"name": "node-1", "gpu_type": "NVIDIA Test-80GB", "gpu_count": 8}, format="json")
    assert made.status_code == 201
    assert made.json()["gpu_type"] == "test-80gb"
    number = made.json()["id"]
    assert api.patch(f"{HOSTS}/{number}", {"gpu_count": 4}, format="json").json()["gpu_count"] == 4
    assert api.get(HOSTS, {"gpu_type": "test-80gb"}).json()["count"] == 1
    assert api.get(HOSTS, {"gpu_type": "other"}).json()["count"] == 0


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"gpu_type": "test-80"}, "gpu_type"),
        ({"gpu_count": 0}, "gpu_count"),
        ({"gpu_count": 10**30}, "gpu_count"),
        ({"name": "\u0007" * 101}, "name"),
    ],
)
def test_a_bad_host_names_its_field(alice, columns, field):
    a_gpu_type(alice)
    body = {"name": "node-1", "gpu_type": "test-80gb", "gpu_count": 8, **columns}
    assert list(errors(api_of(alice).post(HOSTS, body, format="json"))) == [field]


def test_a_gpu_type_that_is_not_known_comes_with_the_nearest(alice):
    a_gpu_type(alice)
    assert (
        "test-80gb"
        in errors(api_of(alice).post(HOSTS, {"name": "n", "gpu_type": "test-8gb"}, format="json"))["gpu_type"]
    )
    assert not Host.objects.exists()


def test_a_model_is_added_by_its_config_and_read_with_it(alice):
    api = api_of(alice)
    config = a_config(time_step_limit=[0.0, float("inf")])
    made = api.generic("POST", MODELS, _with_infinity(config), content_type="application/json")
    assert made.status_code == 201, made.content
    read = api.get(f"{MODELS}/acme--tiny").json()
    assert read["config"]["time_step_limit"] == [0.0, "Infinity"]
    assert read["architecture"] == "LlamaForCausalLM"
    assert read["origin"] == "upload"
    assert "config" not in api.get(MODELS).json()["results"][0]


def _with_infinity(config):
    import json

    return json.dumps({"name": "acme/tiny", "config": config, "source": "a test"}).encode()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "ACME/Small-Llama", "config": {"a": 1}}, "name"),
        ({"name": "", "config": {"a": 1}}, "name"),
        ({"name": "///", "config": {"a": 1}}, "name"),
        ({"name": "acme/x", "config": {}}, "config"),
        ({"name": "acme/x", "config": []}, "config"),
        ({"name": "acme/x"}, "config"),
    ],
)
def test_a_bad_model_names_its_field(alice, body, field):
    a_model(alice)
    assert field in errors(api_of(alice).post(MODELS, body, format="json"))


def test_models_are_found_by_words_and_by_architecture(alice):
    a_model(alice, "acme/small-llama")
    a_model(alice, "other/large-qwen", architectures=["Qwen2ForCausalLM"])
    api = api_of(alice)
    assert [row["name"] for row in api.get(MODELS, {"search": "large other"}).json()["results"]] == ["other/large-qwen"]
    assert api.get(MODELS, {"architecture": "llamaforcausallm"}).json()["count"] == 1
    assert api.get(MODELS, {"ordering": "-name"}).json()["results"][0]["name"] == "other/large-qwen"


def test_lists_come_in_pages(alice):
    for number in range(3):
        a_model(alice, f"acme/model-{number}")
    answer = api_of(alice).get(MODELS, {"page_size": 2, "page": 2}).json()
    assert answer["count"] == 3
    assert [row["name"] for row in answer["results"]] == ["acme/model-2"]


def test_of_two_who_take_a_name_at_the_same_moment_the_second_is_told(alice, monkeypatch):
    a_model(alice)
    monkeypatch.setattr(ModelSpec, "full_clean", lambda *_: None)  # as if the first row had come after the check
    found = errors(api_of(alice).post(MODELS, {"name": "acme/small-llama", "config": a_config()}, format="json"))
    assert "a moment ago" in found["name"]
    assert ModelSpec.objects.count() == 1
