"""What a rule looks at, and how it answers: nothing, a refusal, or a warning."""

from collections.abc import Callable
from dataclasses import dataclass

from planner.core.capacity import RequestClass
from planner.core.engine import EngineArgs, EngineFacts, ResolvedArgs, Version
from planner.core.hardware import Gpu
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.speculation import Speculation, speculation_of
from planner.core.terms import Reason
from planner.core.traits import Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything a rule may look at."""

    model: Model
    gpu: Gpu
    gpu_count: int | None
    facts: EngineFacts
    args: EngineArgs
    resolved: ResolvedArgs
    layout: Layout
    requests: tuple[RequestClass, ...] = ()
    draft: Model | None = None

    @property
    def version(self) -> Version:
        """The release that the command runs on."""
        return self.facts.version

    @property
    def traits(self) -> Traits:
        """What kind of model it is."""
        return self.model.traits

    @property
    def speculation(self) -> Speculation | None:
        """The drafter that the command asks for."""
        return speculation_of(self.args)

    @property
    def context_parallel_size(self) -> int:
        """Ranks over which decoding splits the cache of a sequence."""
        return self.args.decode_context_parallel_size or 1

    @property
    def prefill_parallel_size(self) -> int:
        """Ranks over which prompts are split."""
        return self.args.prefill_context_parallel_size or 1


Rule = Callable[[Case], Reason | None]


def refuse(rule: str, field: str, message: str, remedy: str) -> Reason:
    """Return a refusal: vLLM stops with it."""
    return Reason(rule=rule, field=field, message=message, remedy=remedy)


def warn(rule: str, field: str, message: str, remedy: str) -> Reason:
    """Return a warning: vLLM goes on."""
    return Reason(rule=rule, field=field, message=message, remedy=remedy, level="warn")
