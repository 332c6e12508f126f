"""Real vLLM as judge of the KV cache: its own planner over the same layers and bytes, every figure the same."""

from collections.abc import Iterator
from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.catalog import engine_facts, find_model
from planner.core.cache_plan import cache_design
from planner.core.defaults import resolve
from planner.core.engine import EngineArgs
from planner.core.kv_spec import KvSpec, SpecKind
from planner.core.layout import Layout
from planner.core.units import GIB
from tests.core.cache_questions import answer_of, told
from tests.core.questions import H100
from tests.engine.cache_mixes import MIXES, question_of

FACTS = engine_facts("0.32.0")
PLAIN = KvSpec(kind=SpecKind.FULL, block_size=16)
ALWAYS_SAID = ("kind", "block_size", "head_size", "head_size_v")
SAID_OTHERWISE = ("element_bytes", "kv_quant_mode", "mamba_cache_mode")
MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "google/gemma-2-9b-it",
    "google/gemma-3-27b-it",
    "google/gemma-4-31B-it",
    "openai/gpt-oss-20b",
    "openai/gpt-oss-120b",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "deepseek-ai/DeepSeek-V2-Lite-Chat",
    "deepseek-ai/DeepSeek-V3.2",
    "deepseek-ai/DeepSeek-V4-Flash",
    "Qwen/Qwen3.5-27B",
    "Qwen/Qwen3-Coder-Next",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "tiiuae/Falcon-H1-0.5B-Instruct",
    "XiaomiMiMo/MiMo-V2-Flash",
)


def vllms(engine, question):
    """Return vLLM's answer, or None where it has no words for what is asked."""
    answer = engine.ask("blocks", **question)
    assert answer is None or "refused" not in answer, answer
    return told(answer)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mix=st.sampled_from(MIXES), draw=st.randoms(use_true_random=False))
def test_any_mix_of_layers_is_planned_as_vllm_plans_it(engine, mix, draw):
    question = question_of(draw, mix)
    theirs = vllms(engine, question)
    assert theirs is None or told(answer_of(question, FACTS)) == theirs


def design_of(name, *, tp, pp, **flags):
    """Return what our planner makes of a published model on H100s."""
    model = find_model(name)
    args = EngineArgs(tensor_parallel_size=tp, pipeline_parallel_size=pp, **flags)
    resolved = resolve(args, model=model, gpu=H100, facts=FACTS)
    layout = Layout(
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=1,
        layers_per_stage=resolved.layers_per_stage,
    )
    return cache_design(model, args=args, resolved=resolved, gpu=H100, facts=FACTS, layout=layout), resolved


def fields_of(spec: KvSpec) -> dict:
    """Return a spec's fields as questions name them."""
    said = {name: getattr(spec, name) for name in spec.__slots__ if name not in SAID_OTHERWISE}
    fields = {n: v for n, v in said.items() if n in ALWAYS_SAID or v != getattr(PLAIN, n)}
    return {name: str(value) if name in ("kind", "tokens_per_state") else value for name, value in fields.items()}


def rows_of(stage: tuple[KvSpec, ...], specs: list[KvSpec]) -> Iterator[list[int]]:
    return ([len(list(run)), specs.index(spec)] for spec, run in groupby(stage))


@pytest.mark.parametrize(("tp", "pp"), [(1, 1), (2, 1), (8, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("name", MODELS)
def test_the_caches_of_a_published_model_are_planned_as_vllm_plans_them(engine, name, tp, pp):
    design, resolved = design_of(name, tp=tp, pp=pp)
    stages = design.groups.cached
    specs = list(dict.fromkeys(spec for stage in stages for spec in stage))
    question = {
        "specs": [fields_of(spec) for spec in specs],
        "stages": [
            [(4000 + stage) * GIB + 123_456_789, list(rows_of(held, specs))] for stage, held in enumerate(stages)
        ],
        "max_model_len": resolved.max_model_len,
        "in_flight_tokens": design.bounds.in_flight_tokens,
        "encoder_tokens": design.bounds.encoder_tokens,
        "mamba_cache_mode": resolved.mamba_cache_mode,
        "block_outermost": "DeepSeek-V4" in name,
        "hybrid_manager": "Llama-4" not in name,
    }
    ours = answer_of(question, FACTS)
    assert told(ours) == vllms(engine, question)
    assert told({"stages": groups_of(design)}) == told({"stages": ours["stages"]})


def groups_of(design):
    return [
        [[list(group.layers), group.spec.block_size, sum(spec.page_bytes for spec in group.specs)] for group in stage]
        for stage in design.groups.stages
    ]
