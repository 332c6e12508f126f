"""Which tensor-parallel sizes a model and its GPUs allow, and what speaks against the others."""

from dataclasses import dataclass, replace

from planner.core.errors import PlanningError
from planner.core.estimate import Question, case_of
from planner.core.rules import broken_rules

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 16)
FIELD = "tensor_parallel_size"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeChoice:
    """One size; `refusal` is vLLM's reason against it, "" where there is none."""

    size: int
    refusal: str


def tensor_parallel_choices(question: Question) -> tuple[SizeChoice, ...]:
    """Return the sizes people use, each tried by the same rules as a plan."""
    return tuple(SizeChoice(size=size, refusal=_refusal(question, size)) for size in SIZES)


def _refusal(question: Question, size: int) -> str:
    args = replace(question.args, tensor_parallel_size=size)
    try:
        broken = broken_rules(case_of(replace(question, args=args)))
    except PlanningError as error:
        return error.message if error.field == FIELD else ""
    return next((reason.message for reason in broken if reason.field == FIELD and reason.level != "warn"), "")
