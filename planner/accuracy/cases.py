"""From a published boot to the question a user would have asked before it, or the reason why none can be asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from planner.accuracy.asked import engine_args
from planner.accuracy.naming import release_of, resolve_gpu
from planner.catalog.boots import Boot
from planner.core.engine import EngineFacts, Version
from planner.core.errors import PlanningError
from planner.core.estimate import Question
from planner.core.fit import Fit
from planner.core.hardware import Gpu
from planner.core.model import Model
from planner.core.units import bytes_from_gib

OLDEST = Version(0, 8, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What the catalog offers to look things up."""

    model_of: Callable[[Boot], tuple[Model, bool]]
    gpus: tuple[Gpu, ...]
    find_gpu: Callable[[str], Gpu]
    engine_facts: Callable[[str | None], EngineFacts]
    fit: Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A boot and its standing: `answered`, `not_stated`, `older` (unknown version), `out_of_scope` or `unknown`.

    Only an answered case has a question; `key` names what the planner could not derive where it is unknown. `assumed`
    is set when model, GPU or version is not stated by the source but inferred from its figures.
    """

    boot: Boot
    standing: str
    why: str = ""
    key: str = ""
    assumed: bool = False
    question: Question | None = None


class _Aside(Exception):  # not an error: the boot stands aside
    def __init__(self, standing: str, why: str) -> None:
        super().__init__(why)
        self.standing, self.why = standing, why


def make_cases(boots: Sequence[Boot], known: Knowledge) -> tuple[Case, ...]:
    """Return one case a boot, in order."""
    return tuple(_case(boot, known) for boot in boots)


def _case(boot: Boot, known: Knowledge) -> Case:
    try:
        return _answerable(boot, known)
    except _Aside as aside:
        return Case(boot=boot, standing=aside.standing, why=aside.why)
    except PlanningError as fault:
        only_inferred = fault.field in boot.assumed
        standing, why = ("not_stated", f"{fault.field} is not stated") if only_inferred else ("unknown", str(fault))
        return Case(boot=boot, standing=standing, why=why, key=fault.field)


def _answerable(boot: Boot, known: Knowledge) -> Case:
    _require_stated(boot)
    _require_scope(boot)
    facts = known.engine_facts(release_of(boot.vllm))
    model, is_relative = known.model_of(boot)
    total = boot.total_gib[0] if boot.total_gib else None
    gpu, is_guess = resolve_gpu(boot.gpu, total, known.gpus, known.find_gpu)
    if gpu.compute_capability is None:
        raise _Aside("out_of_scope", "not an NVIDIA GPU")
    if total is not None:
        gpu = gpu.with_total(bytes_from_gib(total))
    question = Question(
        model=model,
        gpu=gpu,
        gpu_count=boot.gpus,
        facts=facts,
        args=engine_args(boot, model, facts.version),
        fit=known.fit,
        free_bytes=bytes_from_gib(min(boot.free_at_start_gib)) if boot.free_at_start_gib else None,
    )
    assumed = _assumed(boot) or is_relative or is_guess
    return Case(boot=boot, standing="answered", assumed=assumed, question=question)


def _assumed(boot: Boot) -> bool:
    return bool(boot.assumed & {"model", "gpu", "vllm", "tp"}) or boot.vllm.startswith("main")


def _require_stated(boot: Boot) -> None:
    release = release_of(boot.vllm)
    if release and (Version.parse(release) < OLDEST or boot.engine_core == "V0"):
        raise _Aside("older", "unknown version: older than vLLM 0.8.5, or its first engine")
    for name in ("model", "gpu", "vllm"):
        if not getattr(boot, name):
            raise _Aside("not_stated", f"{name} is not stated")
    if boot.tp is None and (boot.gpus or 1) > 1:
        raise _Aside("not_stated", "tp is not stated")
    if not release:
        raise _Aside("not_stated", f"{boot.vllm!r} names no release")


def _require_scope(boot: Boot) -> None:
    features = {
        "sleep mode": boot.sleep_mode,
        "the Transformers backend": boot.model_impl == "transformers",
        "a GPU shared with another process, without its free memory": boot.shared_gpu and not boot.free_at_start_gib,
    }
    for feature, present in features.items():
        if present:
            raise _Aside("out_of_scope", feature)


def with_fit(case: Case, fit: Fit) -> Case:
    """Return the case asked of another fit."""
    if case.question is None:
        return case
    return replace(case, question=replace(case.question, fit=fit))
