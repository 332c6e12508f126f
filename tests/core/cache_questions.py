"""Questions about the KV cache in the one form that every vLLM release is asked in, and our answers in its words."""

from fractions import Fraction

from planner.core.errors import BadInput
from planner.core.kv_cache import kv_cache_plan
from planner.core.kv_groups import kv_groups
from planner.core.kv_spec import KvSpec, RequestBounds, SpecKind
from planner.core.units import ELEMENT_BYTES

STOPS = {"refusal": "stops", "estimate": 0}


def spec_of(fields, mamba_cache_mode="none"):
    """Return our spec of a question's fields."""
    values = dict(fields)
    values["kind"] = SpecKind(values["kind"])
    values["element_bytes"] = ELEMENT_BYTES[values.get("dtype", "bfloat16")]
    values["mamba_cache_mode"] = mamba_cache_mode
    if "tokens_per_state" in values:
        values["tokens_per_state"] = Fraction(values["tokens_per_state"])
    return KvSpec(**values)


def stages_of(question):
    """Return the specs of the layers of each stage."""
    specs = [spec_of(fields, question.get("mamba_cache_mode", "none")) for fields in question["specs"]]
    return [[specs[index] for count, index in rows for _ in range(count)] for _, rows in question["stages"]]


def answer_of(question, facts):
    """Return our plan in the words of the releases' answers."""
    try:
        groups, plan = planned(question, facts)
    except BadInput:
        return STOPS
    if plan.refusal:
        estimated = plan.refusal == "kv_one_request" and facts.states_estimated_max_model_len
        return {"refusal": plan.refusal, "estimate": plan.estimated_max_model_len if estimated else 0}
    return {
        "num_gpu_blocks": plan.num_gpu_blocks,
        "tokens": plan.tokens,
        "max_concurrency": plan.max_concurrency,
        "max_model_len": plan.max_model_len,
        "stages": [
            [
                [list(group.layers), group.spec.block_size, sum(spec.page_bytes for spec in group.specs)]
                for group in stage
            ]
            for stage in groups.stages
        ],
    }


def planned(question, facts):
    """Return our groups and our plan."""
    groups = kv_groups(
        stages_of(question),
        facts=facts,
        hybrid_manager=question.get("hybrid_manager", True),
        block_outermost=question.get("block_outermost", False),
    )
    plan = kv_cache_plan(
        groups,
        [available for available, _ in question["stages"]],
        max_model_len=question["max_model_len"],
        bounds=RequestBounds(
            in_flight_tokens=question.get("in_flight_tokens", 8192),
            encoder_tokens=question.get("encoder_tokens", 8192),
            context_parallel=question.get("context_parallel", 1),
            drafted_states_count=question.get("mamba_cache_mode", "none") in facts.kv_states_count_drafts,
        ),
        facts=facts,
        auto_max_model_len=question.get("auto", False),
        num_gpu_blocks_override=question.get("override"),
    )
    return groups, plan


def told(answer):
    """Return an answer in short: groups by their first layer (their order means nothing), layers as spans."""
    if answer is None or "stages" not in answer:
        return answer
    stages = [
        [[spans(layers), *rest] for layers, *rest in sorted([sorted(group[0]), *group[1:]] for group in stage)]
        for stage in answer["stages"]
    ]
    return {**answer, "stages": stages}


def spans(numbers):
    """Return ascending numbers as text: `0-12/4` for 0, 4, 8, 12."""
    parts, start = [], 0
    while start < len(numbers):
        end = start
        step = numbers[start + 1] - numbers[start] if start + 1 < len(numbers) else 1
        while end + 1 < len(numbers) and numbers[end + 1] - numbers[end] == step:
            end += 1
        parts.append(f"{numbers[start]}-{numbers[end]}/{step}" if end > start else str(numbers[start]))
        start = end + 1
    return " ".join(parts)


def agree(ours, theirs, facts):
    """Whether two answers are the same; a log shows two decimals, and old releases checked before they grouped."""
    if facts.kv_check_counts in ("layers", "first_group") and STOPS in (ours, theirs):
        return "refusal" in ours and "refusal" in theirs
    if ours == theirs or "refusal" in ours or "refusal" in theirs:
        return ours == theirs
    return {**ours, "max_concurrency": round(ours["max_concurrency"], 2)} == theirs
