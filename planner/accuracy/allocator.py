"""vLLM's allocator checked alone: from the memory that a log states to the blocks, tokens and concurrency it states."""

from planner.accuracy.notes import set_aside
from planner.catalog.boots import Boot
from planner.core.estimate import Estimate, Question, design_of, situations_of
from planner.core.kv_cache import KvCachePlan
from planner.core.units import GIB, bytes_from_gib

SIZED = frozenset({"booted", "out_of_memory_under_load", "hung"})
HALF_A_HUNDREDTH = GIB // 200  # logs print GiB, and concurrency, with two decimals


def allocator_exact(boot: Boot, question: Question, answer: Estimate) -> bool | None:
    """Return whether the logged memory gives the logged figures, to its rounding; None where one of both is missing."""
    per_stage = _logged_memory(boot, answer.layout.pipeline_parallel_size)
    stated = boot.num_gpu_blocks or boot.kv_tokens or boot.max_concurrency
    incomparable = boot.num_gpu_blocks_override is not None or boot.id in set_aside("allocator")
    if not per_stage or not stated or incomparable or boot.outcome not in SIZED or not answer.ranks:
        return None
    low, high = (_plan(question, answer, per_stage, side) for side in (-HALF_A_HUNDREDTH, HALF_A_HUNDREDTH))
    return (
        _between(boot.num_gpu_blocks, low.num_gpu_blocks, high.num_gpu_blocks)
        and _between(boot.kv_tokens, low.tokens, high.tokens)
        and _between(boot.max_concurrency, low.max_concurrency - 0.005, high.max_concurrency + 0.005)
    )


def _logged_memory(boot: Boot, stages: int) -> list[float]:
    """One figure a stage; of tensor-parallel ranks the least counts, and a lone figure tells nothing of others."""
    figures = list(boot.available_kv_gib)
    if stages == 1:
        return figures and [min(figures)]
    return figures if len(figures) == stages else []


def _between(value: float | None, low: float, high: float) -> bool:
    return value is None or low - 1e-9 <= value <= high + 1e-9


def _plan(question: Question, answer: Estimate, per_stage: list[float], offset_bytes: int) -> KvCachePlan:
    design = design_of(question, situations_of(question, answer.engine, answer.layout)[-1])
    return design.plan([bytes_from_gib(figure) + offset_bytes for figure in per_stage])
