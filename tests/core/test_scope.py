"""What cannot be sized yet is said by name, never guessed."""

from dataclasses import replace

import pytest

from planner.core.errors import Unknown
from planner.core.estimate import estimate
from tests.core.questions import H100, LLAMA_3_8B, ask


@pytest.mark.parametrize("platform", ["rocm", "hpu"])
def test_a_platform_that_measures_memory_its_own_way_is_unknown(platform):
    with pytest.raises(Unknown, match="not planned yet") as fault:
        estimate(ask(LLAMA_3_8B, replace(H100, name="Other", device_type=platform)))
    assert fault.value.field == "gpu"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("speculative_config", '{"method": "ngram", "num_speculative_tokens": 2}'),
    ],
)
def test_a_flag_whose_memory_is_not_derived_is_unknown(flag, value):
    with pytest.raises(Unknown, match="not planned yet") as fault:
        estimate(ask(LLAMA_3_8B, H100, **{flag: value}))
    assert fault.value.field == flag


def test_a_cache_split_over_ranks_is_unknown_where_vllm_would_take_it():
    with pytest.raises(Unknown, match="not planned yet") as fault:
        estimate(ask(LLAMA_3_8B, H100, tensor_parallel_size=16, decode_context_parallel_size=2))
    assert fault.value.field == "decode_context_parallel_size"


def test_a_flag_that_asks_for_nothing_is_planned():
    answer = estimate(ask(LLAMA_3_8B, H100, cpu_offload_gb=0.0, enable_lora=False, decode_context_parallel_size=1))
    assert answer.verdict == "fits"
