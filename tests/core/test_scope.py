"""What cannot be sized yet is said by name, never guessed."""

from dataclasses import replace

import pytest

from planner import catalog
from planner.core.errors import Unknown
from planner.core.estimate import estimate
from planner.core.units import GIB
from tests.core.questions import H100, LLAMA_3_8B, ask

DEEPSEEK_LITE = catalog.find_config("deepseek-ai/DeepSeek-V2-Lite")


@pytest.mark.parametrize("platform", ["rocm", "hpu"])
def test_a_platform_that_measures_memory_its_own_way_is_unknown(platform):
    with pytest.raises(Unknown, match="not planned yet") as fault:
        estimate(ask(LLAMA_3_8B, replace(H100, name="Other", device_type=platform)))
    assert fault.value.field == "gpu"


def test_context_parallelism_of_prompts_is_unknown_where_vllm_would_take_it():
    with pytest.raises(Unknown, match="not planned yet") as fault:
        estimate(ask(LLAMA_3_8B, H100, prefill_context_parallel_size=2))
    assert fault.value.field == "prefill_context_parallel_size"


def test_a_flag_that_asks_for_nothing_is_planned():
    answer = estimate(ask(LLAMA_3_8B, H100, cpu_offload_gb=0.0, enable_lora=False, decode_context_parallel_size=1))
    assert answer.verdict == "fits"


def test_queries_kept_whole_in_a_context_group_are_unknown_unless_they_are_shared_out():
    glm, cards = catalog.find_config("zai-org/GLM-5.1-FP8"), {"tensor_parallel_size": 8}
    b300 = replace(H100, name="B300", total_bytes=268 * GIB, compute_capability=(10, 3))
    with pytest.raises(Unknown, match="VLLM_DCP_Q_REPLICATE=0") as fault:
        estimate(ask(glm, b300, decode_context_parallel_size=2, **cards))
    assert fault.value.field == "decode_context_parallel_size"
    shared_out = estimate(
        ask(glm, b300, decode_context_parallel_size=2, environment={"VLLM_DCP_Q_REPLICATE": "0"}, **cards)
    )
    assert shared_out.kv_cache is not None


def test_two_ranks_of_decode_context_hold_twice_the_tokens():
    alone, shared = (
        estimate(ask(DEEPSEEK_LITE, H100, tensor_parallel_size=2, decode_context_parallel_size=ranks))
        for ranks in (1, 2)
    )
    assert shared.kv_cache.num_gpu_blocks == alone.kv_cache.num_gpu_blocks
    assert shared.kv_cache.tokens == pytest.approx(2 * alone.kv_cache.tokens, rel=1e-3)
