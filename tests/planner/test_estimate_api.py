"""The estimate through the API: the document of the command line, whatever the question."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from planner.api.document_schema import document_components
from planner.api.examples import A_MIX, AS_A_COMMAND, LLAMA_70B
from planner.models import Plan
from planner.services import catalog_load
from tests.factories import a_config, api_of

ESTIMATE = "/api/v1/estimate"
PROJECT = Path(__file__).parents[2]


@pytest.fixture
def ask(bob):
    catalog_load()
    api = api_of(bob)

    def asked(status=200, /, **inputs):
        answer = api.post(ESTIMATE, inputs, format="json")
        assert answer.status_code == status, answer.content
        return answer.json()

    return asked


def test_the_answer_is_the_document_of_the_command_line(ask):
    flags = ["--gpu", LLAMA_70B["gpu"], "--gpu-count", "4", "--vllm-version", "0.32.0"]
    args = ["-tp", "4", "--max-model-len", "8192", "--gpu-memory-utilization", "0.9"]
    serve = ["vllm", "serve", LLAMA_70B["model"], *args]
    command = [sys.executable, PROJECT / "manage.py", "estimate", "--json", *flags, "--", *serve]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert ask(**LLAMA_70B) == json.loads(printed)


def test_four_a100_hold_llama_70b(ask):
    """32.9 GiB of weights a rank and 327,680 bytes a token: 80 layers x 8 KV heads x 128 x 2 (K and V) x 2 bytes."""
    answer = ask(**LLAMA_70B)
    assert answer["verdict"] == "fits"
    assert answer["kv_cache"]["bytes_per_token"] == 80 * 8 * 128 * 2 * 2 == 327_680
    assert answer["kv_cache"]["bytes_per_token_per_rank"] == 327_680 // 4
    assert answer["help"] is None
    assert not Plan.objects.exists()


def test_a_command_says_the_same_as_its_flags(ask):
    named = {**LLAMA_70B, "args": {"tensor_parallel_size": 4, "max_model_len": 8192}}
    command = f"vllm serve {named['model']} --tensor-parallel-size=4 --max-model-len 8192"
    told = {name: named[name] for name in ("gpu", "gpu_count", "vllm_version")}
    assert ask(**told, command=command) == ask(**named)


def test_what_would_help_is_told_on_request(ask):
    changes = ask(**AS_A_COMMAND)["help"]
    assert changes
    assert all(change["gain"] > 0 for change in changes)


def test_a_mix_of_requests_is_counted(ask):
    assert ask(**A_MIX)["capacity"]["mix"]["requests_at_once"]


def test_a_model_need_not_be_on_the_list_when_its_configuration_is_given(ask):
    assert ask(model="nobody/knows", config=a_config(), gpu="h100-sxm5-80gb")["verdict"] == "fits"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"model": "nobody/knows"}, "model"),
        ({"gpu": "abacus"}, "gpu"),
        ({"vllm_version": "0.1.0"}, "vllm_version"),
        ({"config": {**a_config(), "architectures": ["AbacusForCausalLM"]}}, "architectures"),
    ],
)
def test_what_is_not_known_is_an_answer_and_no_error(ask, changes, field):
    answer = ask(**{**LLAMA_70B, **changes})
    assert answer["verdict"] == "unknown"
    assert [reason["field"] for reason in answer["reasons"]] == [field]
    assert answer["reasons"][0]["remedy"]
    assert answer["ranks"] == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"args": {"tensor_paralel_size": 4}}, "tensor_paralel_size"),
        ({"args": {"tensor_parallel_size": "many"}}, "tensor_parallel_size"),
        ({"vllm_version": "newest"}, "vllm_version"),
        ({"command": "vllm serve 'unclosed"}, "command"),
    ],
)
def test_a_bad_question_names_its_field(ask, changes, field):
    (error,) = ask(400, **{**LLAMA_70B, **changes})["errors"]
    assert field in error["field"]
    assert error["fix"]


@pytest.mark.parametrize("inputs", [LLAMA_70B, AS_A_COMMAND, A_MIX, {**LLAMA_70B, "model": "nobody/knows"}])
def test_the_answer_has_the_shape_that_the_schema_states(ask, inputs):
    components = {"components": {"schemas": document_components()}}
    Draft202012Validator({"$ref": "#/components/schemas/Document", **components}).validate(ask(**inputs))


numbers = st.one_of(st.integers(-3, 10**12), st.floats(allow_nan=False, allow_infinity=False), st.just("auto"))
values = st.one_of(numbers, st.booleans(), st.none(), st.text(max_size=8), st.lists(numbers, max_size=3))
FLAGS = [
    *("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "max_model_len", "max_num_seqs"),
    *("block_size", "dtype", "gpu_memory_utilization", "max_num_batched_tokens", "kv_cache_dtype"),
    *("kv_cache_memory_bytes", "num_gpu_blocks_override", "cudagraph_capture_sizes", "compilation_config"),
    *("hf_overrides", "quantization", "cpu_offload_gb"),
]
some_flags = st.dictionaries(st.sampled_from(FLAGS), values, max_size=3)
some_keys = st.dictionaries(st.sampled_from(list(a_config())), values, max_size=2)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(some_flags, some_keys)
def test_whatever_is_asked_there_is_an_answer_in_words(ask_anything, args, keys):
    answer = ask_anything({"gpu": "h100-sxm5-80gb", "model": "a/b", "config": {**a_config(), **keys}, "args": args})
    assert answer.status_code in {200, 400}, answer.content
    assert answer.json().get("summary") or answer.json()["errors"][0]["fix"]


@pytest.fixture
def ask_anything(bob):
    catalog_load()
    api = api_of(bob)
    return lambda inputs: api.post(ESTIMATE, inputs, format="json")
