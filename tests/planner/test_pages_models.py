"""Models: the list, one model's sheet, where it fits, and the three ways to add one."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from planner import services
from planner.core.errors import Unknown
from planner.models import GpuType, ModelSpec
from tests.factories import a_config, a_gpu_type, a_model

UNPLANNED = {"architectures": ["AcmeForCausalLM"], "model_type": "acme", "num_hidden_layers": 64, "vocab_size": 50280}


@pytest.fixture
def operator(client, alice):
    client.force_login(alice)
    return client


def an_unplanned_model(user):
    return services.model_add_from_config(user=user, name="acme/odd", config=UNPLANNED, source="a test")


def names(answer):
    return [row["name"] for row in answer.json()["results"]]


def test_the_sheet_states_what_follows_from_the_configuration(operator, alice):
    a_model(alice)
    data = operator.get("/models/acme--small-llama.json").json()["model"]
    # 4 layers x 2 (key and value) x 4 KV heads x 64 x 2 B = 4,096 B a token, half of that with fp8.
    assert data["spec"]["kv_bytes_per_token"] == 4096
    assert data["spec"]["kv_bytes_per_token_fp8"] == 2048
    assert data["spec"]["bytes_per_full_request"] == 4096 * 4096
    assert data["spec"]["attention_kind"] == "grouped-query (GQA)"
    html = operator.get("/models/acme--small-llama").content.decode()
    assert "4 KiB, with fp8 2 KiB" in html
    assert "LlamaForCausalLM" in html
    assert 'href="/plans/new?model=acme/small-llama">Plan it' in html


def test_weights_are_stated_by_data_type(operator, alice):
    a_model(alice)
    weights = dict(operator.get("/models/acme--small-llama.json").json()["model"]["spec"]["weight_bytes"])
    assert weights["float32"] == 2 * weights["bfloat16"]


def test_a_model_that_cannot_be_planned_shows_its_facts_and_says_why(operator, alice):
    an_unplanned_model(alice)
    html = operator.get("/models/acme--odd").content.decode()
    assert "Not planned yet." in html
    assert "<dd>64</dd>" in html
    assert "Plan it" not in html
    data = operator.get("/models/acme--odd.json").json()["model"]
    assert data["spec"] is None
    assert "AcmeForCausalLM" in data["unplanned"]


def test_the_list_is_narrowed_by_what_can_be_planned(operator, alice):
    a_model(alice), an_unplanned_model(alice)
    assert names(operator.get("/models.json")) == ["acme/odd", "acme/small-llama"]
    assert names(operator.get("/models.json?plannable=yes")) == ["acme/small-llama"]
    assert names(operator.get("/models.json?plannable=no")) == ["acme/odd"]
    assert names(operator.get("/models.json?architecture=llamaforcausallm")) == ["acme/small-llama"]
    assert names(operator.get("/models.json?origin=catalog")) == []


def test_the_list_is_sorted_by_a_figure_and_the_unknown_stand_last(operator, alice):
    a_model(alice, "acme/b", num_hidden_layers=8), a_model(alice, "acme/a"), an_unplanned_model(alice)
    assert names(operator.get("/models.json?ordering=kv_bytes_per_token")) == ["acme/a", "acme/b", "acme/odd"]
    assert names(operator.get("/models.json?ordering=-kv_bytes_per_token")) == ["acme/b", "acme/a", "acme/odd"]


def test_an_edited_row_is_read_again(operator, alice):
    row = a_model(alice)
    operator.get("/models/acme--small-llama.json")
    row.config = a_config(num_hidden_layers=8)
    row.save()
    assert operator.get("/models/acme--small-llama.json").json()["model"]["spec"]["kv_bytes_per_token"] == 8192


def test_where_it_fits_is_a_matrix_of_links_to_the_workbench(operator, alice):
    a_model(alice), a_gpu_type(alice)
    data = operator.get("/models/acme--small-llama/fits.json").json()
    assert data["gpu_counts"] == [1, 2, 4, 8]
    (row,) = data["rows"]
    assert [cell["gpu_count"] for cell in row["cells"]] == [1, 2, 4, 8]
    assert row["cells"][0]["verdict"] == "fits"
    html = operator.get("/models/acme--small-llama/fits").content.decode()
    assert "model=acme/small-llama&amp;gpu=test-80gb&amp;gpu_count=4&amp;tensor_parallel_size=4" in html


def test_a_gpu_type_added_later_joins_the_matrix(operator, alice):
    a_model(alice), a_gpu_type(alice)
    operator.get("/models/acme--small-llama/fits.json")
    a_gpu_type(alice, "Test 24GB")
    rows = operator.get("/models/acme--small-llama/fits.json").json()["rows"]
    assert {row["gpu"] for row in rows} == {"test-80gb", "test-24gb"}


def test_htmx_gets_the_matrix_without_the_page(operator, alice):
    a_model(alice), a_gpu_type(alice)
    part = operator.get("/models/acme--small-llama/fits", headers={"HX-Request-Type": "partial"}).content.decode()
    assert part.lstrip().startswith("<section")
    assert "<html" not in part


def test_a_list_of_many_models_asks_the_database_no_more_often(operator, alice, django_assert_max_num_queries):
    for number in range(12):
        a_model(alice, f"acme/model-{number}")
    operator.get("/models")
    with django_assert_max_num_queries(8):
        operator.get("/models")


def test_an_uploaded_config_is_added(operator):
    upload = SimpleUploadedFile("config.json", json.dumps(a_config()).encode())
    answer = operator.post("/models/add/file", {"name": "our-team/llama", "file": upload})
    assert answer.url == "/models/our-team--llama"
    row = ModelSpec.objects.get()
    assert (row.origin, row.config["num_hidden_layers"]) == ("upload", 4)


def test_a_pasted_config_that_is_no_json_keeps_its_text_and_names_the_place(operator):
    answer = operator.post("/models/add/file", {"name": "our-team/llama", "text": '{"hidden_size": 4096,,}'})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert "line 1, column 22" in html
    assert "{&quot;hidden_size&quot;: 4096,,}" in html
    assert 'value="our-team/llama"' in html


@pytest.mark.parametrize(("text", "said"), [("", "nothing was given"), ("[1, 2]", "not a JSON object")])
def test_a_config_that_is_none_is_told(operator, text, said):
    answer = operator.post("/models/add/file", {"name": "our-team/llama", "text": text})
    assert answer.status_code == 422
    assert said in answer.content.decode()


def test_a_model_by_hand_plans_like_its_config(operator):
    form = {
        "name": "our-team/7b",
        "architecture": "LlamaForCausalLM",
        "torch_dtype": "bfloat16",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_attention_heads": 32,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
    }
    assert operator.post("/models/add/hand", form).url == "/models/our-team--7b"
    data = operator.get("/models/our-team--7b.json").json()["model"]
    # Llama-2-7B: 6,738,415,616 parameters, 512 KiB of KV a token.
    assert data["parameters"] == 6_738_415_616
    assert data["spec"]["kv_bytes_per_token"] == 512 * 1024


def test_a_missing_figure_is_told_beside_its_field(operator):
    answer = operator.post("/models/add/hand", {"name": "our-team/7b", "hidden_size": "wide"})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert 'id="hand_hidden_size_error"' in html
    assert 'value="wide"' in html
    assert not ModelSpec.objects.exists()


def test_a_taken_name_is_told(operator, alice):
    a_model(alice)
    answer = operator.post("/models/add/file", {"name": "acme/small-llama", "text": json.dumps(a_config())})
    assert answer.status_code == 422
    assert 'id="file_name_error"' in answer.content.decode()


def test_the_hub_being_out_of_reach_is_told_and_the_token_is_not_sent_back(operator, monkeypatch):
    def unreachable(**given):
        assert given["token"] == "hf_secret"
        raise Unknown(field="repo_id", message="the hub cannot be reached.", fix="upload the config.json")

    monkeypatch.setattr(services, "model_add_from_hub", unreachable)
    answer = operator.post("/models/add/hub", {"repo_id": "acme/small-llama", "token": "hf_secret"})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert 'id="hub_repo_id_error"' in html
    assert "upload the config.json" in html
    assert 'value="acme/small-llama"' in html
    assert "hf_secret" not in html


def test_an_id_that_is_none_is_told_before_anything_is_fetched(operator):
    answer = operator.post("/models/add/hub", {"repo_id": "just-a-name"})
    assert answer.status_code == 422
    assert "ORGANISATION/NAME" in answer.content.decode()


def test_paula_adds_models_and_bob_does_not(client, paula, bob):
    form = {"name": "our-team/llama", "text": json.dumps(a_config())}
    client.force_login(bob)
    assert client.post("/models/add/file", form).status_code == 403
    client.force_login(paula)
    assert client.post("/models/add/file", form).status_code == 302


def test_a_gpu_type_of_the_catalog_has_a_source_for_each_fact(operator):
    services.catalog_load()
    assert GpuType.objects.get(slug="a100-sxm4-80gb").origin == "catalog"
    facts = operator.get("/gpu-types/a100-sxm4-80gb.json").json()["facts"]
    by_label = {fact["label"]: fact for fact in facts}
    total = by_label["Memory, as CUDA sees it"]
    assert (total["low"], total["value"], total["high"]) == (79.14, 79.15, 79.35)
    assert by_label["Memory, as nvidia-smi shows it (NVML)"]["value"] == 81920
    assert all(fact["source"] and fact["confidence"] in ("high", "medium", "low") for fact in facts)
