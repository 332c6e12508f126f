"""One boot scored: each figure that its log states, beside what was predicted and whether the interval held it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.accuracy.allocator import HALF_A_HUNDREDTH, allocator_exact
from planner.accuracy.cases import Case
from planner.catalog.boots import Boot, PerRank
from planner.core.allocation import rounding_bytes
from planner.core.estimate import Estimate, Question, estimate, situations_of
from planner.core.terms import Term
from planner.core.units import GIB, bytes_from_gib

NOT_ABOUT_MEMORY = frozenset({"data_parallel_rank", "other_process"})
STOPPED = frozenset({"refused", "out_of_memory_at_boot"})
RAN = frozenset({"booted", "out_of_memory_under_load"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A predicted interval beside the measured bytes."""

    low_bytes: int
    predicted_bytes: int
    high_bytes: int
    measured_bytes: int

    @property
    def error_bytes(self) -> int:
        """Predicted less measured."""
        return self.predicted_bytes - self.measured_bytes

    @property
    def held(self) -> bool:
        """Whether the interval held the logged figure."""
        return self.low_bytes <= self.measured_bytes <= self.high_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The figures of one answered boot; None where the log does not state one.

    `overhead_bytes` is requested - weights - logged KV: what the baseline looks up. `stopped` and `predicted_stop` are
    None for a boot whose end says nothing about memory.
    """

    case: Case
    total_bytes: int
    weights_bytes: int
    requested_bytes: int
    available_kv: Figure | None
    activation: Figure | None
    non_torch: Figure | None
    cuda_graphs: Figure | None
    weights: Figure | None
    allocator_exact: bool | None
    stopped: bool | None
    predicted_stop: bool
    slack_verdict: str
    summary: str

    @property
    def overhead_bytes(self) -> int | None:
        """What the log's budget lost to anything but weights and KV."""
        if self.available_kv is None:
            return None
        return self.requested_bytes - self.weights_bytes - self.available_kv.measured_bytes


def score(case: Case) -> Score | None:
    """Return the score of a case, None where there is no question; raises PlanningError as `estimate` does."""
    return None if case.question is None else _score(case, case.question, estimate(case.question))


def _score(case: Case, question: Question, answer: Estimate) -> Score:
    boot = case.boot
    stage = _measured_stage(boot, answer)
    first_rank = stage * answer.layout.tensor_parallel_size
    terms = {term.name: term for term in answer.ranks[first_rank].terms} if answer.ranks else {}
    weights = terms.get("weights")
    rounding = rounding_bytes(situations_of(question, answer.engine, answer.layout)[stage]) if answer.ranks else 0
    return Score(
        case=case,
        total_bytes=question.gpu.total_bytes,
        weights_bytes=weights.bytes if weights else 0,
        requested_bytes=answer.ranks[0].requested_bytes if answer.ranks else 0,
        available_kv=_available(boot, question, answer, stage, terms),
        activation=_figure(terms.get("activation"), _of_stage(boot.activation_gib, stage)),
        non_torch=_moved(_figure(terms.get("non_torch"), _of_stage(boot.non_torch_gib, stage)), -rounding),
        cuda_graphs=_figure(terms.get("cuda_graphs"), _graphs_stated(boot, question)),
        weights=_logged(_moved(_figure(weights, _of_stage(boot.weights_gib, stage)), rounding)),
        allocator_exact=allocator_exact(boot, question, answer),
        stopped=_stopped(boot),
        predicted_stop=answer.verdict != "fits",
        slack_verdict=answer.slack.verdict if answer.slack else "",
        summary=answer.summary,
    )


def _measured_stage(boot: Boot, answer: Estimate) -> int:
    """Return the stage to compare: of a list per stage the one that binds; a lone figure is the first rank's."""
    stages = answer.layout.pipeline_parallel_size
    if stages == 1 or answer.kv_cache is None or len(boot.available_kv_gib) < stages:
        return 0
    return answer.kv_cache.binding_rank // answer.layout.tensor_parallel_size


def _of_stage(figures: PerRank, stage: int) -> float | None:
    if not figures:
        return None
    return figures[stage] if stage < len(figures) else figures[0]


def _figure(term: Term | None, measured_gib: float | None) -> Figure | None:
    if term is None or measured_gib is None:
        return None
    return Figure(
        low_bytes=term.low_bytes,
        predicted_bytes=term.bytes,
        high_bytes=term.high_bytes,
        measured_bytes=bytes_from_gib(measured_gib),
    )


def _moved(figure: Figure | None, offset: int) -> Figure | None:
    """What the allocator adds to weight tensors is weights in a log and non-torch in a plan: compare like with like."""
    if figure is None:
        return None
    return replace(
        figure,
        low_bytes=figure.low_bytes + offset,
        predicted_bytes=figure.predicted_bytes + offset,
        high_bytes=figure.high_bytes + offset,
    )


def _logged(figure: Figure | None) -> Figure | None:
    """An exact term is held when it is right to the rounding of the log."""
    if figure is None:
        return None
    return replace(
        figure,
        low_bytes=figure.predicted_bytes - HALF_A_HUNDREDTH,
        high_bytes=figure.predicted_bytes + HALF_A_HUNDREDTH,
    )


def _graphs_stated(boot: Boot, question: Question) -> float | None:
    """Inside the budget counts what was deducted, the estimate; outside it what was captured."""
    figures = boot.graphs_estimated_gib if question.facts.cuda_graphs == "inside" else boot.graphs_gib
    return max(figures) if figures else None


def _available(boot: Boot, question: Question, answer: Estimate, stage: int, terms: dict[str, Term]) -> Figure | None:
    """A log that prints only blocks still states the memory, to one block."""
    term = terms.get("kv_cache")
    if term is None or question.args.kv_cache_memory_bytes is not None:
        return None
    tensor_ranks = boot.available_kv_gib if answer.layout.pipeline_parallel_size == 1 else ()
    stated = min(tensor_ranks) if tensor_ranks else _of_stage(boot.available_kv_gib, stage)
    if (
        stated is None
        and boot.num_gpu_blocks
        and boot.outcome == "booted"
        and answer.layout.pipeline_parallel_size == 1
    ):
        assert answer.kv_cache is not None  # noqa: S101  # a plan with terms has a cache
        per_block = answer.kv_cache.bytes_per_token_per_rank * answer.kv_cache.block_size
        stated = boot.num_gpu_blocks * per_block / GIB
    return _figure(term, stated)


def _stopped(boot: Boot) -> bool | None:
    if boot.failure in NOT_ABOUT_MEMORY or boot.outcome not in STOPPED | RAN:
        return None
    return boot.outcome in STOPPED


TERMS: dict[str, Callable[[Score], Figure | None]] = {
    "activation": lambda score: score.activation,
    "non_torch": lambda score: score.non_torch,
    "cuda_graphs": lambda score: score.cuda_graphs,
    "weights": lambda score: score.weights,
    "available_kv": lambda score: score.available_kv,
}
