"""A sweep against the plans it stands for, one by one, and what it refuses."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.core.errors import BadInput
from planner.core.estimate import estimate
from planner.core.sweep import sweep
from tests.core.facts import FACTS_019, FACTS_032
from tests.core.questions import H100, LLAMA_3_70B, ask

UTILIZATIONS = [0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99]
SIZES = st.sampled_from([1, 2, 4, 8])


@settings(max_examples=25, deadline=None)
@given(
    facts=st.sampled_from([FACTS_019, FACTS_032]),
    sizes=st.lists(SIZES, min_size=1, max_size=3, unique=True),
    stages=st.sampled_from([1, 2]),
    length=st.integers(1, 8192),
)
def test_every_cell_is_the_plan_of_its_own(facts, sizes, stages, length):
    question = ask(LLAMA_3_70B, H100, facts=facts, max_model_len=length, pipeline_parallel_size=stages)
    axes = {"tensor_parallel_size": sizes, "gpu_memory_utilization": UTILIZATIONS}
    for row, size in zip(sweep(question, axes), sizes, strict=True):
        for place, share in enumerate(UTILIZATIONS):
            args = replace(question.args, tensor_parallel_size=size, gpu_memory_utilization=share)
            alone = estimate(replace(question, args=args))
            assert row.boots[place] == (alone.verdict == "fits"), (size, share, alone.summary)
            if alone.verdict == "fits":
                held = alone.capacity.requests_at_max_model_len.requests
                assert (row.num_gpu_blocks[place], row.requests[place]) == (alone.kv_cache.num_gpu_blocks, held)


def test_a_combination_that_vllm_refuses_says_why():
    # 64 query heads do not divide by 3
    (row,) = sweep(ask(LLAMA_3_70B, H100), {"tensor_parallel_size": [3], "gpu_memory_utilization": [0.8, 0.9]})
    assert not row.boots.any()
    assert "64" in row.reason


def test_more_than_ten_thousand_configurations_are_too_many():
    with pytest.raises(BadInput, match="10,001 configurations"):
        sweep(ask(LLAMA_3_70B, H100), {"max_model_len": list(range(1, 10_002))})


def test_a_cache_of_a_fixed_size_has_no_utilization_to_sweep():
    with pytest.raises(BadInput, match="kv_cache_memory_bytes fixes the cache"):
        sweep(ask(LLAMA_3_70B, H100, kv_cache_memory_bytes=1 << 33), {"gpu_memory_utilization": [0.9]})
