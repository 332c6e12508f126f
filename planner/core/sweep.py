"""Thousands of deployments at once: every combination of some flags, all shares of the GPU's memory in one pass."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.core.budget import StageBudget, requested_bytes
from planner.core.capacity import Pool
from planner.core.errors import BadInput, PlanningError
from planner.core.estimate import Question, Sizing, case_of, sizing_of
from planner.core.kv_cache import least_available_bytes
from planner.core.memory_rules import needs_a_state_each, out_of_memory
from planner.core.rules import broken_rules
from planner.core.situation import Situation
from planner.core.slack import held_before_start_bytes

UTILIZATION = "gpu_memory_utilization"
MOST_CONFIGURATIONS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow:
    """One combination of the other flags, over all utilizations.

    `flags` are the values of this combination. Of each utilization: `boots` says whether vLLM would start,
    `num_gpu_blocks` and `requests` what the cache then holds (requests of full length, at once). `reason` is why none
    of them boots, "" where one does.
    """

    flags: Mapping[str, Any]
    max_model_len: int
    boots: NDArray[np.bool_]
    num_gpu_blocks: NDArray[np.int64]
    requests: NDArray[np.int64]
    reason: str


def sweep(question: Question, axes: Mapping[str, Sequence[Any]]) -> tuple[SweepRow, ...]:
    """Return a row for every combination of the flags in `axes`, `gpu_memory_utilization` inside each row.

    The other flags are planned one by one, as `estimate` does; what changes with it, the bytes
    and blocks of the cache, is computed for all at once. Raises BadInput for more than 10,000 configurations, and for a
    cache whose size is given as such.
    """
    utilizations = np.array(utilizations_of(question, axes))
    others = {flag: values for flag, values in axes.items() if flag != UTILIZATION}
    _require_sensible(question, others, len(utilizations))
    return tuple(_row(question, flags, utilizations) for flags in _combinations(others))


def utilizations_of(question: Question, axes: Mapping[str, Sequence[Any]]) -> tuple[float, ...]:
    """Return the utilizations of a sweep: those asked for, else the command's own or its release's default."""
    stated = question.args.gpu_memory_utilization
    alone = question.facts.default_gpu_memory_utilization if stated is None else stated
    return tuple(axes.get(UTILIZATION) or (alone,))


def _require_sensible(question: Question, others: Mapping[str, Sequence[Any]], utilizations: int) -> None:
    count = utilizations * int(np.prod([len(values) for values in others.values()]))
    if not 0 < count <= MOST_CONFIGURATIONS:
        message = f"{count:,} configurations are asked for."
        raise BadInput(field="axes", message=message, fix=f"ask for 1 to {MOST_CONFIGURATIONS:,}")
    for flag in ("kv_cache_memory_bytes", "num_gpu_blocks_override"):
        if flag in others or getattr(question.args, flag) is not None:
            message = f"{flag} fixes the cache, so no utilization changes it."
            raise BadInput(field=flag, message=message, fix="drop it to sweep over utilizations")


def _combinations(others: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*others.values()):
        yield dict(zip(others, values, strict=True))


def _row(question: Question, flags: Mapping[str, Any], utilizations: NDArray[np.float64]) -> SweepRow:
    changed: dict[str, Any] = {**flags, UTILIZATION: float(utilizations.max())}
    asked = replace(question, args=replace(question.args, **changed))
    try:
        case = case_of(asked)
        refused = next((reason.message for reason in broken_rules(case) if reason.level != "warn"), "")
        if refused:
            return _nothing(flags, len(utilizations), refused)
        sizing = sizing_of(asked, case.resolved, case.layout)
    except PlanningError as error:
        return _nothing(flags, len(utilizations), f"{error.field}: {error.message}")
    return _sized(asked, sizing, flags, utilizations)


def _nothing(flags: Mapping[str, Any], count: int, reason: str) -> SweepRow:
    none = np.zeros(count, dtype=np.int64)
    return SweepRow(
        flags=flags, max_model_len=0, boots=none.astype(np.bool_), num_gpu_blocks=none, requests=none, reason=reason
    )


def _sized(question: Question, sizing: Sizing, flags: Mapping[str, Any], utilizations: NDArray[np.float64]) -> SweepRow:
    first, design = sizing.situations[0], sizing.design
    length = first.args.max_model_len
    requested = _requested(question, utilizations)
    available = np.stack([requested - _spent(stage) - first.args.frontend_bytes for stage in sizing.stages])
    blocks = _blocks(available, design.groups.bytes_per_block)
    least = least_available_bytes(design.groups, length, bounds=design.bounds, facts=question.facts)
    enough = np.all(available >= np.array(least)[:, None], axis=0)
    boots = enough & _starts(question, sizing, utilizations) & _captures(sizing, requested)
    boots &= _keeps_states(first, blocks)
    pool = Pool(block_size=1, num_gpu_blocks=0, low_blocks=0, high_blocks=0, groups=design.costs(length))
    return SweepRow(
        flags=flags,
        max_model_len=length,
        boots=boots,
        num_gpu_blocks=blocks,
        requests=np.where(boots, np.maximum(blocks - 1, 0) // max(1, pool.blocks_of(length)), 0),
        reason="" if boots.any() else "no utilization leaves enough for one request, or none is free at start.",
    )


def _requested(question: Question, utilizations: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.array(
        [requested_bytes(question.gpu.total_bytes, float(share), question.facts) for share in utilizations],
        dtype=np.int64,
    )


def _spent(stage: StageBudget) -> int:
    """What the budget pays for beside the cache; no utilization changes it."""
    return stage.requested_bytes - stage.available.bytes


def _blocks(available: NDArray[np.int64], bytes_per_block: Sequence[int]) -> NDArray[np.int64]:
    """The fewest blocks of any stage; one where nothing is cached."""
    counts = [np.maximum(room, 0) // size for room, size in zip(available, bytes_per_block, strict=True) if size]
    return np.min(counts, axis=0) if counts else np.ones(available.shape[1], dtype=np.int64)


def _starts(question: Question, sizing: Sizing, utilizations: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether as much is free as is asked for, and loading and profiling fit whatever is asked for."""
    fits = all(
        out_of_memory(situation, stage, sizing.free.bytes, question.fit) is None
        for situation, stage in zip(sizing.situations, sizing.stages, strict=True)
    )
    unchecked = not (question.facts.checks_free_memory or question.gpu.is_cpu)
    return fits & (unchecked | (question.gpu.total_bytes * utilizations <= sizing.free.bytes))


def _captures(sizing: Sizing, requested: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether graphs that are captured outside the budget (before 0.20) find room there."""
    room: NDArray[np.bool_] = np.ones(len(requested), dtype=np.bool_)
    for situation, stage in zip(sizing.situations, sizing.stages, strict=True):
        graphs = next(term for term in stage.terms if term.name == "cuda_graphs")
        if not graphs.inside_budget:
            held = held_before_start_bytes(situation.layout)
            room &= stage.total_bytes - requested - held >= graphs.low_bytes
    return room


def _keeps_states(situation: Situation, blocks: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether there is a block for the state of each sequence, where vLLM wants one."""
    least = situation.args.max_num_seqs if needs_a_state_each(situation) else 0
    kept: NDArray[np.bool_] = blocks >= least
    return kept
