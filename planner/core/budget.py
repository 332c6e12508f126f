"""One rank's memory as ordered terms: what the budget is, what it pays for, and what stays outside."""

import math
from dataclasses import dataclass

from planner.core.calibration import Fit, MeasuredTerms, Situation, measured_terms
from planner.core.engine import EngineFacts, ResolvedArgs
from planner.core.hardware import Gpu
from planner.core.layout import Rank
from planner.core.stage_weights import stage_weights
from planner.core.terms import Interval, Term, exactly
from planner.core.units import GIB, in_gib

CPU_RESIDENT = Interval(low_bytes=int(0.45 * GIB), bytes=int(0.58 * GIB), high_bytes=int(0.95 * GIB))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBudget:
    """The budget that every rank of one pipeline stage has: terms in display order, KV bytes with their interval.

    The terms inside the budget sum to `requested_bytes`; `available` may be negative, as vLLM's log may.
    """

    pp_stage: int
    total_bytes: int
    requested_bytes: int
    available: Interval
    terms: tuple[Term, ...]

    def bytes_of(self, name: str) -> int:
        """Return the central bytes of one term."""
        return next(term.bytes for term in self.terms if term.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBudget:
    """A rank with the budget of its stage."""

    rank: int
    pp_stage: int
    tp_rank: int
    total_bytes: int
    requested_bytes: int
    terms: tuple[Term, ...]


def rank_budget(rank: Rank, stage: StageBudget) -> RankBudget:
    """Return the budget of one rank; ranks of a stage hold the same shares."""
    return RankBudget(
        rank=rank.rank,
        pp_stage=rank.pp_stage,
        tp_rank=rank.tp_rank,
        total_bytes=stage.total_bytes,
        requested_bytes=stage.requested_bytes,
        terms=stage.terms,
    )


def requested_bytes(total_bytes: int, utilization: float, facts: EngineFacts) -> int:
    """Return the budget: total x gpu_memory_utilization, rounded up from 0.16 (vLLM `request_memory`)."""
    budget = total_bytes * utilization
    return math.ceil(budget) if facts.rounds_requested_up else int(budget)


def stage_budget(situation: Situation, fit: Fit) -> StageBudget:
    """Return the terms of one pipeline stage.

    KV gets what is left: requested - weights - activation - non-torch - graphs (the last from 0.20 on). With
    `kv_cache_memory_bytes` the allocator works from exactly that, and "requested" is the sum of what is asked for.
    Source: vLLM `v1.worker.gpu_worker.Worker.determine_available_memory`, `cpu_worker` on the CPU platform.
    """
    weights = _weights(situation)
    measured = _measured(situation, fit)
    share = _cache_share(situation, weights.bytes, measured)
    return StageBudget(
        pp_stage=situation.pp_stage,
        total_bytes=situation.gpu.total_bytes,
        requested_bytes=share.requested_bytes,
        available=share.available,
        terms=(
            weights,
            measured.activation,
            measured.non_torch,
            measured.cuda_graphs,
            _kv_term(share.available, share.formula),
            _outside_term(situation.gpu, share.requested_bytes, situation.args),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CacheShare:
    requested_bytes: int
    available: Interval
    formula: str


def _cache_share(situation: Situation, weight_bytes: int, measured: MeasuredTerms) -> _CacheShare:
    gpu, args = situation.gpu, situation.args
    spent = weight_bytes + sum(term.bytes for term in measured_inside(measured))
    if args.kv_cache_memory_bytes is not None:
        return _CacheShare(
            requested_bytes=spent + args.kv_cache_memory_bytes,
            available=exactly(args.kv_cache_memory_bytes),
            formula=f"{args.kv_cache_memory_bytes:,} B, given as kv_cache_memory_bytes",
        )
    requested = requested_bytes(gpu.total_bytes, args.gpu_memory_utilization, situation.facts)
    return _CacheShare(
        requested_bytes=requested,
        available=_left_over(requested - spent, measured.overhead, gpu, args.gpu_memory_utilization),
        formula=_kv_formula(requested, weight_bytes, measured),
    )


def measured_inside(measured: MeasuredTerms) -> tuple[Term, ...]:
    """Return the measured terms that are paid for out of the budget."""
    terms = (measured.activation, measured.non_torch, measured.cuda_graphs)
    return tuple(term for term in terms if term.inside_budget)


def _measured(situation: Situation, fit: Fit) -> MeasuredTerms:
    """On the CPU platform without a KV size, the budget also pays for the resident worker process."""
    measured = measured_terms(situation, fit)
    if not situation.gpu.is_cpu or situation.args.kv_cache_memory_bytes is not None:
        return measured
    resident = Term(
        name="non_torch",
        bytes=CPU_RESIDENT.bytes,
        low_bytes=CPU_RESIDENT.low_bytes,
        high_bytes=CPU_RESIDENT.high_bytes,
        formula="resident size of the worker process before the KV cache is allocated",
        source="vLLM v1/worker/cpu_worker.py; 0.55 and 0.60 GiB on two CPU boots of 0.32, interval allowed",
        inside_budget=True,
    )
    return MeasuredTerms(
        activation=measured.activation,
        non_torch=resident,
        cuda_graphs=measured.cuda_graphs,
        overhead=CPU_RESIDENT,
    )


def _left_over(central_bytes: int, overhead: Interval, gpu: Gpu, utilization: float) -> Interval:
    """Combine the overhead's interval with the range of the GPU's total; the two are independent."""
    less = math.hypot(overhead.high_bytes - overhead.bytes, utilization * (gpu.total_bytes - gpu.total_low_bytes))
    more = math.hypot(overhead.bytes - overhead.low_bytes, utilization * (gpu.total_high_bytes - gpu.total_bytes))
    return Interval(low_bytes=int(central_bytes - less), bytes=central_bytes, high_bytes=int(central_bytes + more))


def _weights(situation: Situation) -> Term:
    loaded = stage_weights(situation)
    size = loaded.loaded_bytes
    return Term(
        name="weights",
        bytes=size,
        low_bytes=size,
        high_bytes=size,
        formula=loaded.formula,
        source='vLLM model_executor/models, as each rank loads it; what the log calls "Model loading took"',
        inside_budget=True,
    )


def _kv_formula(requested: int, weight_bytes: int, measured: MeasuredTerms) -> str:
    spent = "".join(f" - {in_gib(term.bytes)} {term.name}" for term in measured_inside(measured) if term.bytes)
    return f"{in_gib(requested)} requested - {in_gib(weight_bytes)} weights{spent}"


def _kv_term(available: Interval, formula: str) -> Term:
    return Term(
        name="kv_cache",
        bytes=available.bytes,
        low_bytes=available.low_bytes,
        high_bytes=available.high_bytes,
        formula=formula,
        source="vLLM v1/worker/gpu_worker.py determine_available_memory",
        inside_budget=True,
    )


def _outside_term(gpu: Gpu, requested: int, args: ResolvedArgs) -> Term:
    fixed = args.kv_cache_memory_bytes is not None
    total = in_gib(gpu.total_bytes)
    share = f"{total} total x (1 - {args.gpu_memory_utilization:g})"
    shrinks = 1.0 if fixed else gpu.total_low_bytes / gpu.total_bytes
    grows = 1.0 if fixed else gpu.total_high_bytes / gpu.total_bytes
    return Term(
        name="outside_budget",
        bytes=gpu.total_bytes - requested,
        low_bytes=int(gpu.total_low_bytes - requested * shrinks),
        high_bytes=int(gpu.total_high_bytes - requested * grows),
        formula=f"{total} total - {in_gib(requested)} asked for" if fixed else share,
        source="vLLM v1/worker/utils.py request_memory",
        inside_budget=False,
    )
