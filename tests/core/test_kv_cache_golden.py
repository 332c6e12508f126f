"""Blocks, logged tokens and concurrency against the planners of twenty vLLM releases (fixture by tests/engine)."""

import json
from pathlib import Path

import pytest

from planner.catalog import engine_facts
from tests.core.full_attention import StageKv, kv_cache_plan

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "blocks_vllm.json").read_text())
QUESTIONS = GOLDEN.pop("questions")


def planned(question, facts):
    """Return our answer in the form of the fixture: figures, or the refusal and the length it estimates."""
    stages, block_size, max_model_len, override = question
    names = ("layers", "kv_heads", "head_dim", "element_bytes", "available_bytes")
    plan = kv_cache_plan(
        [StageKv(**dict(zip(names, stage, strict=True))) for stage in stages],
        block_size=block_size,
        max_model_len=abs(max_model_len),
        facts=facts,
        auto_max_model_len=max_model_len < 0,
        num_gpu_blocks_override=override,
    )
    if not plan.refusal:
        return [plan.num_gpu_blocks, plan.tokens, round(plan.max_concurrency, 2), plan.max_model_len]
    estimated = plan.refusal == "kv_one_request" and facts.states_estimated_max_model_len
    return [plan.refusal, plan.estimated_max_model_len if estimated else 0]


@pytest.mark.parametrize("version", GOLDEN)
def test_the_allocator_is_that_of_the_release(version):
    facts = engine_facts(version)
    for question, answer in zip(QUESTIONS, GOLDEN[version], strict=True):
        if question[2] > 0 or facts.auto_max_model_len:
            assert planned(question, facts) == answer, question
