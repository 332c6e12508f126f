"""The workbench as text: the address is the whole state, a fault stands beside its field, a fragment is a fragment."""

import json
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.http import QueryDict

from planner.models import Plan
from planner.question_form import read_into, state_of
from tests.factories import a_gpu_type, a_model

ASKED = "/plans/new?model=acme/small-llama&gpu=test-80gb&max_model_len=4096"
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture
def catalog_of_one(alice):
    return a_model(alice), a_gpu_type(alice)


@pytest.fixture
def as_bob(client, bob, catalog_of_one):
    client.force_login(bob)
    return client


@pytest.fixture
def as_paula(client, paula, catalog_of_one):
    client.force_login(paula)
    return client


def state(query):
    return state_of(QueryDict(query)).urlencode(safe="/:")


def test_empty_fields_are_no_part_of_the_state():
    assert state("model=a/b&gpu=&max_model_len=+&gpu_count=4") == "model=a/b&gpu_count=4"


def test_rows_of_traffic_become_one_text_each():
    row = {"name": "burst", "share": "1", "prompt": "7680", "output": "512", "prefix": "", "concurrent": "85"}
    assert state(urlencode({f"request_{part}": text for part, text in row.items()})) == "request=burst:1:7680:512::85"


def test_an_untouched_row_is_no_request():
    row = "request_name=&request_share=&request_prompt=&request_output=&request_prefix=&request_concurrent="
    assert state(f"model=a/b&{row}") == "model=a/b"


def test_a_colon_in_a_name_does_not_shift_the_rest():
    row = "request_name=a:b&request_share=&request_prompt=8&request_output=2&request_prefix=&request_concurrent="
    assert state(row) == "request=a%20b::8:2"


def test_a_command_replaces_the_flags_and_keeps_the_machine():
    asked = QueryDict("gpu=h100&gpu_count=8&max_num_seqs=64&command=vllm+serve+a/b+-tp+4+--enforce-eager")
    read = read_into(asked)
    assert read.urlencode(safe="/") == "model=a/b&gpu=h100&gpu_count=8&tensor_parallel_size=4&enforce_eager=true"


def test_typed_flags_are_added_to_those_that_are_set():
    asked = QueryDict("model=a/b&max_num_seqs=64&other=--block-size+32")
    assert read_into(asked).urlencode(safe="/") == "model=a/b&max_num_seqs=64&block_size=32"


def test_an_address_with_empty_fields_leads_to_the_one_without(as_bob):
    answer = as_bob.get(f"{ASKED}&max_num_seqs=&free_gib=")
    assert (answer.status_code, answer.url) == (302, ASKED)


def test_the_whole_page_is_a_page(as_bob):
    text = as_bob.get(ASKED).content.decode()
    assert text.count("<html") == 1
    assert 'class="verdict verdict--fits"' in text


def test_a_keystroke_gets_a_fragment_and_the_address_of_its_state(as_bob):
    answer = as_bob.get(f"{ASKED}&max_num_seqs=", headers=HTMX)
    assert "<html" not in answer.content.decode()
    assert answer["HX-Push-Url"] == ASKED
    assert "HX-Request-Type" in answer["Vary"]


def test_a_keystroke_that_changes_nothing_makes_no_step_in_the_history(as_bob):
    answer = as_bob.get(ASKED, headers={**HTMX, "HX-Current-URL": f"http://testserver{ASKED}"})
    assert "HX-Push-Url" not in answer


def test_a_page_restored_from_the_history_is_whole(as_bob):
    answer = as_bob.get(ASKED, headers={"HX-Request": "true", "HX-Request-Type": "full"})
    assert "<html" in answer.content.decode()


def test_bad_input_is_422_beside_its_field_and_keeps_what_was_typed(as_bob):
    answer = as_bob.get(f"{ASKED}&max_num_seqs=many", headers=HTMX)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert answer["HX-Retarget"] == "#problem"
    assert 'value="many"' in text
    assert 'aria-invalid="true" aria-describedby="e-max_num_seqs"' in text


def test_a_fault_of_no_field_here_is_said_all_the_same(as_bob):
    answer = as_bob.get(f"{ASKED}&max_modle_len=8192")
    assert answer.status_code == 422
    assert "max-model-len" in answer.content.decode()  # the nearest flag


def test_what_is_not_known_is_a_verdict(as_bob):
    answer = as_bob.get("/plans/new?model=acme/other&gpu=test-80gb")
    assert answer.status_code == 200
    assert "verdict--unknown" in answer.content.decode()


def test_the_same_address_with_json_is_the_document(as_bob):
    answer = as_bob.get(ASKED.replace("new?", "new.json?"))
    assert json.loads(answer.content)["verdict"] == "fits"


def test_bad_input_as_data_names_its_field(as_bob):
    answer = as_bob.get(ASKED.replace("new?", "new.json?") + "&max_num_seqs=many")
    assert answer.status_code == 400
    assert json.loads(answer.content)["field"] == "max_num_seqs"


def test_nothing_is_written_by_looking(as_bob):
    as_bob.get(ASKED)
    assert not Plan.objects.exists()


def test_a_viewer_may_not_save(as_bob):
    assert as_bob.post(ASKED).status_code == 403
    assert not Plan.objects.exists()


def test_saving_freezes_inputs_and_answer(as_paula, paula):
    answer = as_paula.post(ASKED, {"name": "first"})
    plan = Plan.objects.get()
    assert (answer.status_code, answer.url) == (302, f"/plans/{plan.pk}")
    assert (plan.name, plan.created_by, plan.verdict, plan.inputs["args"]) == (
        "first",
        paula,
        "fits",
        {"max_model_len": "4096"},
    )


def test_saving_from_a_plan_makes_its_child(as_paula):
    as_paula.post(ASKED)
    parent = Plan.objects.get()
    as_paula.post(f"{ASKED}&max_num_seqs=64&from={parent.pk}")
    assert Plan.objects.exclude(pk=parent.pk).get().parent == parent


def test_what_has_no_answer_is_not_saved_and_says_why(as_paula):
    answer = as_paula.post("/plans/new?model=acme/other&gpu=test-80gb")
    assert answer.status_code == 422
    assert not Plan.objects.exists()


def test_saving_under_a_plan_that_is_not_there_is_told(as_paula):
    assert as_paula.post(f"{ASKED}&from=999").status_code == 404
    assert as_paula.post(f"{ASKED}&from=x").status_code == 404


def test_help_links_lead_to_the_changed_question(as_bob):
    answer = as_bob.get(ASKED.replace("new?", "new/help?"), headers=HTMX)
    address = next(change["url"] for change in answer.context["changes"] if change["flag"] == "kv_cache_dtype")
    assert parse_qs(urlsplit(address).query)["kv_cache_dtype"] == ["fp8"]
    assert parse_qs(urlsplit(address).query)["max_model_len"] == ["4096"]


def test_text_that_somebody_typed_is_text(as_bob):
    text = as_bob.get("/plans/new?model=<script>alert(1)</script>&gpu=test-80gb").content.decode()
    assert "<script>alert" not in text


def test_a_gpu_by_the_name_that_nvidia_smi_prints_is_the_one_of_the_list(as_bob, alice):
    a_gpu_type(alice, "Card 9", aliases=["NVIDIA Card-9-40GB"])
    text = as_bob.get("/plans/new?model=acme/small-llama&gpu=NVIDIA+Card-9-40GB").content.decode()
    assert '<option value="card-9" selected>' in text


def test_a_gpu_that_is_not_there_stays_in_the_form(as_bob):
    text = as_bob.get("/plans/new?model=acme/small-llama&gpu=abacus").content.decode()
    assert '<option value="abacus" selected>abacus</option>' in text


def test_defaults_stay_beside_a_bad_field(as_bob):
    text = as_bob.get(f"{ASKED}&gpu_memory_utilization=lots").content.decode()
    assert 'name="max_num_batched_tokens" value="" placeholder="8192"' in text  # a server from 70 GiB, no A100
