"""From a JSON body or an address to the question: every field read or named, nothing lost on the way back."""

from urllib.parse import parse_qs

import pytest

from planner.core.errors import BadInput, Unknown
from planner.inputs import INPUT_NAMES
from planner.query import inputs_from_query, normalized, query_from_inputs
from planner.questions import question_from_inputs

LLAMA = "meta-llama/Meta-Llama-3-70B-Instruct"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
ASKED = {"model": LLAMA, "gpu": "a100-sxm4-80gb", "vllm_version": "0.32.0"}


def asked(**inputs):
    return question_from_inputs({**ASKED, **inputs})


def fault(**inputs):
    with pytest.raises(BadInput) as caught:
        asked(**inputs)
    return caught.value


def test_names_become_a_model_a_gpu_and_a_release():
    question = asked(gpu_count=4, args={"tensor_parallel_size": 4})
    assert question.model.num_layers == 80
    assert question.gpu.slug == "a100-sxm4-80gb"
    assert str(question.facts.version) == "0.32.0"
    assert question.args.tensor_parallel_size == 4
    assert question.gpu_count == 4


def test_a_gpu_may_be_named_as_nvidia_smi_prints_it():
    assert asked(gpu="NVIDIA A100-SXM4-80GB").gpu.slug == "a100-sxm4-80gb"


def test_memory_given_in_gib_is_the_exact_total():
    gpu = asked(gpu_memory_gib=79.25).gpu
    assert gpu.total_bytes == gpu.total_low_bytes == gpu.total_high_bytes == round(79.25 * 2**30)


def test_memory_free_at_start_is_taken_in_gib():
    assert asked(free_gib="70").free_bytes == 70 * 2**30


def test_a_config_makes_the_model_a_mere_name():
    question = asked(model="our/own", config=CONFIG)
    assert (question.model.name, question.model.num_layers) == ("our/own", 32)


def test_overrides_change_the_model_before_it_is_read():
    overrides = {"hf_overrides": {"max_position_embeddings": 16384}}
    assert asked(model="our/own", config=CONFIG, args=overrides).model.derived_max_model_len == 16384
    assert asked(args=overrides).model.derived_max_model_len == 16384


def test_a_command_is_taken_apart_and_fields_win_over_it():
    question = asked(
        model=None,
        command=f"CUDA_VISIBLE_DEVICES=0,1 vllm serve {LLAMA} -tp 4 --max-model-len 8k",
        args={"tensor_parallel_size": 2},
    )
    assert question.args.model == LLAMA
    assert question.args.tensor_parallel_size == 2
    assert question.args.max_model_len == 8000
    assert question.gpu_count == 2


def test_devices_chosen_by_a_flag_are_all_there_are():
    assert asked(args={"device_ids": "2,3"}, gpu_count=8).gpu_count == 2


def test_a_value_that_changes_nothing_is_planned():
    assert asked(args={"runner": "generate", "model_impl": "auto"}).args.model == LLAMA


def test_request_classes_are_read():
    (kind,) = asked(
        requests=[
            {"name": "chat", "share": 0.8, "prompt_tokens": 1200, "output_tokens": 300, "shared_prefix_tokens": 200}
        ]
    ).requests
    assert (kind.name, kind.share, kind.total_tokens, kind.shared_prefix_tokens) == ("chat", 0.8, 1500, 200)


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        ({"gpus": 4}, "gpus"),
        ({"gpu": ""}, "gpu"),
        ({"gpu": 4}, "gpu"),
        ({"model": ""}, "model"),
        ({"gpu_count": 0}, "gpu_count"),
        ({"gpu_count": 1.5}, "gpu_count"),
        ({"gpu_count": True}, "gpu_count"),
        ({"gpu_memory_gib": -1}, "gpu_memory_gib"),
        ({"gpu_memory_gib": float("nan")}, "gpu_memory_gib"),
        ({"gpu_memory_gib": "1e999"}, "gpu_memory_gib"),
        ({"free_gib": [1]}, "free_gib"),
        ({"vllm_version": "newest"}, "vllm_version"),
        ({"vllm_version": 0.32}, "vllm_version"),
        ({"config": "{}"}, "config"),
        ({"args": [1]}, "args"),
        ({"args": {"tensor_parallel": 4}}, "tensor_parallel"),
        ({"environment": {"A": None}}, "environment"),
        ({"include": ["everything"]}, "include"),
        ({"requests": {}}, "requests"),
        ({"requests": ["chat"]}, "requests"),
        ({"requests": [{"prompt_tokens": 0, "output_tokens": 1}]}, "requests"),
        ({"requests": [{"prompt_tokens": 10, "output_tokens": 1, "shared_prefix_tokens": 11}]}, "requests"),
        ({"requests": [{"prompt_tokens": 10, "output_tokens": 1, "share": "all"}]}, "requests"),
        ({"requests": [{"prompt_tokens": 10, "output_tokens": 1, "rate": 1}]}, "requests"),
        ({"requests": [{"name": "a", "prompt_tokens": 10, "output_tokens": 1}] * 2}, "requests"),
        ({"requests": [{"prompt_tokens": 10, "output_tokens": 1, "concurrent": 10**9}]}, "requests"),
        ({"requests": [{"prompt_tokens": 10, "output_tokens": 1, "share": 0}]}, "requests"),
        ({"requests": [{"prompt_tokens": 10, "output_tokens": 1, "share": 1e300}]}, "requests"),
    ],
)
def test_a_bad_input_is_named(inputs, field):
    assert fault(**inputs).field == field


def test_an_unknown_input_is_told_its_nearest():
    assert "did you mean gpu_count?" in fault(gpu_counts=4).fix


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        ({"model": "nobody/nothing"}, "model"),
        ({"gpu": "z9000"}, "gpu"),
        ({"vllm_version": "0.6.6"}, "vllm_version"),
        ({"args": {"quantization_config": {"a": 1}}}, "quantization_config"),
        ({"args": {"runner": "pooling"}}, "runner"),
        ({"args": {"config": "flags.yaml"}}, "config"),
    ],
)
def test_what_nobody_here_knows_is_unknown_by_name(inputs, field):
    with pytest.raises(Unknown) as caught:
        asked(**inputs)
    assert caught.value.field == field


INPUTS = {
    "model": LLAMA,
    "gpu": "a100-sxm4-80gb",
    "gpu_count": 4,
    "gpu_memory_gib": 79.25,
    "vllm_version": "0.32.0",
    "args": {
        "tensor_parallel_size": 4,
        "gpu_memory_utilization": 0.85,
        "enable_prefix_caching": False,
        "cudagraph_capture_sizes": [1, 2, 4],
        "compilation_config": '{"cudagraph_mode": "PIECEWISE"}',
    },
    "environment": {"VLLM_PP_LAYER_PARTITION": "80"},
    "requests": [
        {"name": "chat", "share": 0.8, "prompt_tokens": 1200, "output_tokens": 300},
        {"name": "a:b", "share": 0.2, "prompt_tokens": 7000, "output_tokens": 500, "concurrent": 10},
    ],
}


def test_an_address_holds_the_whole_question():
    back = inputs_from_query(parse_qs(query_from_inputs(INPUTS)))
    assert question_from_inputs({**back, "requests": None}) == question_from_inputs({**INPUTS, "requests": None})
    assert [kind.total_tokens for kind in question_from_inputs(back).requests] == [1500, 7500]


def test_an_address_is_short_and_in_vllm_s_own_words():
    inputs = {**ASKED, "gpu_count": 4, "args": {"tensor_parallel_size": 4}, "requests": INPUTS["requests"][:1]}
    assert query_from_inputs(inputs) == (
        "model=meta-llama/Meta-Llama-3-70B-Instruct&gpu=a100-sxm4-80gb&gpu_count=4&vllm_version=0.32.0"
        "&tensor_parallel_size=4&request=chat:0.8:1200:300"
    )


def test_a_model_given_by_its_config_stays_in_the_address():
    inputs = {**ASKED, "model": "our/own", "config": CONFIG}
    assert inputs_from_query(parse_qs(query_from_inputs(inputs)))["config"] == CONFIG


def test_a_command_becomes_fields_and_keeps_no_secret():
    plain = normalized({**ASKED, "model": None, "command": f"HF_TOKEN=abc vllm serve {LLAMA} -tp 4 --api-key abc"})
    assert plain["model"] == LLAMA
    assert plain["args"] == {"tensor_parallel_size": 4, "api_key": "***"}
    assert "abc" not in repr(plain)
    assert set(plain) <= set(INPUT_NAMES)


def test_empty_fields_and_the_page_s_own_are_no_inputs():
    assert inputs_from_query({"model": "m", "gpu": "", "max_model_len": " ", "from": "17"}) == {"model": "m"}


def test_capitals_in_an_address_are_variables():
    assert inputs_from_query({"VLLM_USE_V1": "1"}) == {"environment": {"VLLM_USE_V1": "1"}}


@pytest.mark.parametrize("text", ["chat", "chat:1:2", "a:b:c:d:e:f:g"])
def test_a_request_class_in_a_wrong_form_shows_the_right_one(text):
    with pytest.raises(BadInput, match="name:share:prompt:output"):
        inputs_from_query({"request": text})
