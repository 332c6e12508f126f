"""Real vLLM as judge of the KV cache: its own allocator over the same layers and bytes."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.core.model import model_from_config
from planner.core.units import DTYPE_BYTES, GIB
from tests.core.facts import FACTS_032
from tests.core.full_attention import StageKv, kv_cache_plan
from tests.engine.shapes import LLAMA_31_8B, MISTRAL_7B_V03, OPT_125M, QWEN2_7B, QWEN3_8B

SHAPES = {
    "Llama-3.1-8B": LLAMA_31_8B,
    "Qwen2-7B": QWEN2_7B,
    "Qwen3-8B": QWEN3_8B,
    "Mistral-7B-v0.3": MISTRAL_7B_V03,
    "opt-125m": OPT_125M,
}


def ours(stages, *, block_size, max_model_len, derived=None, override=None):
    """Return our answer in the words of the engine's."""
    plan = kv_cache_plan(
        stages,
        block_size=block_size,
        max_model_len=derived if max_model_len == -1 else max_model_len,
        facts=FACTS_032,
        auto_max_model_len=max_model_len == -1,
        num_gpu_blocks_override=override,
    )
    if plan.refusal:
        return plan.refusal
    return plan.num_gpu_blocks, plan.tokens, plan.max_concurrency, plan.max_model_len


def vllms(engine, stages, *, block_size, max_model_len, derived=None, override=None):
    """Return vLLM's answer, a refusal by the rule that names it."""
    answer = engine.ask(
        "blocks",
        stages=[[s.layers, s.kv_heads, s.head_dim, s.element_bytes, s.available_bytes] for s in stages],
        block_size=block_size,
        max_model_len=max_model_len,
        derived_max_model_len=derived,
        num_gpu_blocks_override=override,
    )
    if "refused" in answer:
        return next((rule for text, rule in REFUSALS if text in answer["text"]), answer["text"])
    return answer["num_gpu_blocks"], answer["tokens"], answer["max_concurrency"], answer["max_model_len"]


REFUSALS = (
    ("No available memory", "no_kv_memory"),
    ("To serve at least one request", "kv_one_request"),
    ("Cannot auto-fit", "autofit_fail"),
)


def one_stage(config, *, tp, available):
    model = model_from_config(config, name="judged")
    return StageKv(
        layers=model.num_layers,
        kv_heads=max(1, model.num_kv_heads // tp),
        head_dim=model.head_dim,
        element_bytes=DTYPE_BYTES[model.dtype],
        available_bytes=available,
    )


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("name", SHAPES)
def test_blocks_tokens_and_concurrency_are_vllms_own(engine, name, tp):
    stages = [one_stage(SHAPES[name], tp=tp, available=20 * GIB + 123_456_789)]
    length = model_from_config(SHAPES[name], name="judged").derived_max_model_len
    question = {"block_size": 16, "max_model_len": length}
    assert ours(stages, **question) == vllms(engine, stages, **question)


STAGES = st.builds(
    StageKv,
    layers=st.integers(1, 12),
    kv_heads=st.integers(1, 8),
    head_dim=st.sampled_from([32, 64, 80, 96, 128, 256]),
    element_bytes=st.sampled_from([1, 2, 4]),
    available_bytes=st.integers(-(1 << 20), 1 << 31),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stage=STAGES,
    block_size=st.sampled_from([16, 32, 64, 128]),
    length=st.integers(1, 200_000),
    auto=st.booleans(),
    override=st.none() | st.integers(1, 5000),
)
def test_any_full_attention_layers_get_the_blocks_vllm_gives_them(engine, stage, block_size, length, auto, override):
    question = {
        "block_size": block_size,
        "max_model_len": -1 if auto else length,
        "derived": length,
        "override": override,
    }
    assert ours([stage], **question) == vllms(engine, [stage], **question)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    layers=st.lists(st.integers(1, 9), min_size=2, max_size=4),
    available=st.lists(st.integers(1 << 24, 1 << 30), min_size=4, max_size=4),
    length=st.integers(1, 40_000),
    auto=st.booleans(),
)
def test_the_tightest_pipeline_stage_decides_for_all(engine, layers, available, length, auto):
    stages = [
        StageKv(layers=count, kv_heads=2, head_dim=64, element_bytes=2, available_bytes=room)
        for count, room in zip(layers, available, strict=False)
    ]
    question = {"block_size": 16, "max_model_len": -1 if auto else length, "derived": length}
    assert ours(stages, **question) == vllms(engine, stages, **question)
