"""The command of a boot, from its fields, its excerpted command line and words beside it."""

import json

import pytest

from planner.accuracy.asked import engine_args, environment_of, speculative_config
from planner.catalog import find_model
from planner.core.engine import Version
from tests.accuracy.cases import a_boot

LLAMA = find_model("meta-llama/Llama-3.1-8B-Instruct")


def args_of(**facts):
    return engine_args(a_boot(**facts), LLAMA, Version(0, 19))


def test_flags_of_an_excerpted_command_count():
    args = args_of(command="docker run x --model y --mm-encoder-tp-mode data --limit-mm-per-prompt '{\"image\":0}' ...")
    assert args.setting("mm_encoder_tp_mode") == "data"
    assert json.loads(args.setting("limit_mm_per_prompt")) == {"image": 0}


def test_stated_fields_win_over_the_command():
    assert args_of(command="vllm serve x --max-model-len 99", max_model_len=8192).max_model_len == 8192


def test_a_flag_nobody_knows_is_left_out():
    assert args_of(command="vllm serve x --invented 5 --enforce-eager").enforce_eager is True


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        ("limit_mm_per_prompt image=2,audio=0", {"image": 2, "audio": 0}),
        ("limit-mm-per-prompt image 0 audio 0", {"image": 0, "audio": 0}),
    ],
)
def test_limits_are_read_from_words(words, limits):
    assert json.loads(args_of(flags=words).setting("limit_mm_per_prompt")) == limits


@pytest.mark.parametrize(
    ("words", "method", "tokens"),
    [
        ("mtp n=3", "mtp", 3),
        ("qwen3_5_mtp n=3", "qwen3_5_mtp", 3),
        ("DFlash-10", "dflash", 10),
        ("DFlash2, 7 tokens", "dflash", 7),
        ("mtp, num_speculative_tokens=1", "mtp", 1),
        ("dspark", "dspark", None),
    ],
)
def test_a_drafter_is_read_from_words(words, method, tokens):
    stated = json.loads(speculative_config(a_boot(speculative_config=words)))
    assert (stated["method"], stated.get("num_speculative_tokens")) == (method, tokens)


def test_variables_come_from_the_command_and_the_words_beside_it():
    boot = a_boot(command="VLLM_USE_V2_MODEL_RUNNER=0 vllm serve x", flags="VLLM_PP_LAYER_PARTITION=16,32")
    assert dict(environment_of(boot)) == {"VLLM_USE_V2_MODEL_RUNNER": "0", "VLLM_PP_LAYER_PARTITION": "16,32"}
