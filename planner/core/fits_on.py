"""On which GPUs, and on how many of them, one model fits at a version's defaults."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.core.errors import PlanningError
from planner.core.estimate import Estimate, Question, estimate
from planner.core.hardware import Gpu

GPU_COUNTS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One GPU type and count, tensor-parallel over all of them; `requests` are of full length, at once, 0 if none."""

    gpu: str
    gpu_count: int
    verdict: str
    requests: int
    max_model_len: int | None
    reason: str


def fits_on(
    question: Question, gpus: Iterable[Gpu], counts: Sequence[int] = GPU_COUNTS
) -> tuple[tuple[Cell, ...], ...]:
    """Return one row of cells a GPU; an answer that is not known is a cell that says so."""
    return tuple(tuple(_cell(question, gpu, count) for count in counts) for gpu in gpus)


def _cell(question: Question, gpu: Gpu, count: int) -> Cell:
    args = replace(question.args, tensor_parallel_size=count)
    try:
        answer = estimate(replace(question, gpu=gpu, gpu_count=count, args=args))
    except PlanningError as error:
        return Cell(
            gpu=gpu.slug, gpu_count=count, verdict="unknown", requests=0, max_model_len=None, reason=error.message
        )
    return Cell(
        gpu=gpu.slug,
        gpu_count=count,
        verdict=answer.verdict,
        requests=_requests(answer),
        max_model_len=answer.engine.max_model_len,
        reason=answer.reasons[0].message if answer.reasons else "",
    )


def _requests(answer: Estimate) -> int:
    if answer.verdict != "fits" or answer.capacity is None:
        return 0
    return min(answer.capacity.requests_at_max_model_len.requests, answer.engine.max_num_seqs)
