"""From a published boot to the question a user would have asked before it, or the reason why none can be asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from planner.accuracy.given import environment_of
from planner.accuracy.naming import out_of_scope_by_name, release_of, resolve_gpu, resolve_model
from planner.catalog.boots import Boot
from planner.core.engine import EngineArgs, EngineFacts, Version
from planner.core.errors import PlanningError
from planner.core.estimate import Question
from planner.core.fit import Fit
from planner.core.hardware import Gpu
from planner.core.model import Model
from planner.core.units import bytes_from_gib

OLDEST = Version(0, 8, 5)
AUTO_LENGTH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What the catalog offers to look things up."""

    model_names: tuple[str, ...]
    unplanned: frozenset[str]
    gpus: tuple[Gpu, ...]
    find_model: Callable[[str], Model]
    find_gpu: Callable[[str], Gpu]
    engine_facts: Callable[[str | None], EngineFacts]
    fit: Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A boot and its standing: `answered` (there is a question), `not_stated`, `out_of_scope` or `unknown` (a miss).

    `assumed` is set when model, GPU or version is not stated by the source but inferred from its figures.
    """

    boot: Boot
    standing: str
    why: str = ""
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
        return Case(boot=boot, standing=standing, why=why)


def _answerable(boot: Boot, known: Knowledge) -> Case:
    _require_stated(boot)
    _require_scope(boot, known)
    facts = known.engine_facts(release_of(boot.vllm))
    model, is_relative = resolve_model(boot.model, known.model_names, known.find_model)
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
        args=engine_args(boot),
        fit=known.fit,
        free_bytes=bytes_from_gib(min(boot.free_at_start_gib)) if boot.free_at_start_gib else None,
    )
    return Case(boot=boot, standing="answered", assumed=_assumed(boot) or is_relative or is_guess, question=question)


def _assumed(boot: Boot) -> bool:
    return bool(boot.assumed & {"model", "gpu", "vllm", "tp"})


def _require_stated(boot: Boot) -> None:
    for name in ("model", "gpu", "vllm"):
        if not getattr(boot, name):
            raise _Aside("not_stated", f"{name} is not stated")
    if boot.tp is None and (boot.gpus or 1) > 1:
        raise _Aside("not_stated", "tp is not stated")
    release = release_of(boot.vllm)
    if not release:
        raise _Aside("not_stated", f"{boot.vllm!r} names no release")
    if Version.parse(release) < OLDEST or boot.engine_core == "V0":
        raise _Aside("out_of_scope", "older than vLLM 0.8.5, or its first engine")


def _require_scope(boot: Boot, known: Knowledge) -> None:
    features = {
        "quantised weights": bool(boot.quantization),
        "LoRA adapters": boot.lora,
        "a draft model": boot.draft_model,
        "sleep mode": boot.sleep_mode,
        "weights offloaded to the host": bool(boot.cpu_offload_gb),
        "context parallelism": (boot.decode_context_parallel_size or 1) > 1,
        "the Transformers backend": boot.model_impl == "transformers",
        "a GPU shared with another process": boot.shared_gpu,
    }
    for feature, present in features.items():
        if present:
            raise _Aside("out_of_scope", feature)
    reason = out_of_scope_by_name(boot.model)
    if reason:
        raise _Aside("out_of_scope", reason)
    if boot.model.lower().rsplit("/", 1)[-1] in known.unplanned:
        raise _Aside("out_of_scope", "not a dense decoder with full attention")


def engine_args(boot: Boot) -> EngineArgs:
    """Return the command of a boot, as far as it is stated."""
    auto = {"", "auto"}
    return EngineArgs(
        model=boot.model,
        usage=boot.usage,
        dtype=None if boot.dtype in auto else boot.dtype,
        tensor_parallel_size=boot.tp,
        pipeline_parallel_size=boot.pp,
        data_parallel_size=boot.dp,
        gpu_memory_utilization=boot.utilization,
        max_model_len="auto" if boot.max_model_len == AUTO_LENGTH else boot.max_model_len,
        max_num_seqs=boot.max_num_seqs,
        max_num_batched_tokens=boot.max_num_batched_tokens,
        kv_cache_dtype=None if boot.kv_cache_dtype in auto else boot.kv_cache_dtype,
        block_size=boot.block_size,
        enforce_eager=boot.enforce_eager,
        enable_prefix_caching=boot.prefix_caching,
        num_gpu_blocks_override=boot.num_gpu_blocks_override,
        kv_cache_memory_bytes=boot.kv_cache_memory_bytes,
        load_format=boot.load_format or None,
        environment=environment_of(boot),
    )


def with_fit(case: Case, fit: Fit) -> Case:
    """Return the case asked of another fit."""
    if case.question is None:
        return case
    return replace(case, question=replace(case.question, fit=fit))
