"""Where a boot stops for want of memory: at the start, loading, profiling, sizing the cache, or capturing graphs."""

import math
from collections.abc import Sequence

from planner.core.activation import sampler_binds
from planner.core.budget import StageBudget
from planner.core.engine import EngineFacts, Version
from planner.core.fit import Fit
from planner.core.free_memory import HELD_BY_OTHERS_BYTES, FreeMemory, free_memory
from planner.core.hardware import Gpu
from planner.core.kv_cache import KvCachePlan
from planner.core.layout import Layout
from planner.core.situation import Situation
from planner.core.slack import held_before_start_bytes
from planner.core.terms import Reason
from planner.core.units import in_gib, in_words

LARGEST_SENSIBLE_UTILIZATION = 0.97
STATES_ARE_CHECKED = Version(0, 20)


def free_at_start_bytes(gpu: Gpu, layout: Layout, facts: EngineFacts, free_bytes: int | None) -> int:
    """Return the memory that vLLM is taken to find free."""
    return free_memory(gpu, layout, facts, free_bytes).bytes


def start_reasons(situation: Situation, free: FreeMemory) -> tuple[Reason, ...]:
    """Return what the memory free at start makes of the boot: a refusal, or doubts."""
    found = (_too_little_free(situation, free), _others_may_change(situation, free))
    return tuple(reason for reason in found if reason is not None)


def _too_little_free(situation: Situation, free: FreeMemory) -> Reason | None:
    """vLLM `v1.worker.utils.request_memory`: free memory at start below total x utilization is refused (0.9.2 on).

    The check runs even when kv_cache_memory_bytes is given. On the CPU platform only without a KV size.
    """
    gpu, resolved = situation.gpu, situation.args
    asked = gpu.total_bytes * resolved.gpu_memory_utilization
    unchecked = resolved.kv_cache_memory_bytes is not None if gpu.is_cpu else not situation.facts.checks_free_memory
    if unchecked or asked <= free.low_bytes:
        return None
    certain = asked > free.bytes
    shown = free.bytes if certain else free.low_bytes
    remedy = "lower --gpu-memory-utilization, or give --kv-cache-memory-bytes"
    return Reason(
        rule="cpu_startup_mem" if gpu.is_cpu else "free_memory",
        field="gpu_memory_utilization",
        message=(
            f"{in_gib(shown)} of {in_gib(gpu.total_bytes)} {'are' if certain else 'may be'} free at start, "
            f"and {in_gib(asked)} are asked for."
        ),
        remedy=remedy if gpu.is_cpu else _free_memory_remedy(gpu, shown),
        level="does_not_fit" if certain else "warn",
    )


def _others_may_change(situation: Situation, free: FreeMemory) -> Reason | None:
    """vLLM `Worker.determine_available_memory`: what others take is charged to it, what they free stops it."""
    gpu = situation.gpu
    held = free.others_bytes(gpu.total_bytes, held_before_start_bytes(situation.layout))
    if gpu.is_cpu or not free.given or held < HELD_BY_OTHERS_BYTES:
        return None
    return Reason(
        rule="free_changed",
        field="free_gib",
        message=(
            f"others hold {in_gib(held)} of this GPU: what they take while vLLM measures is charged to its cache, "
            "and what they free meanwhile stops it."
        ),
        remedy="start the engines one after another, each with a share that leaves room for the others",
        level="warn",
    )


def largest_utilization(gpu: Gpu, free: int) -> float:
    """Return the largest gpu_memory_utilization, in hundredths, that the memory free at start allows."""
    return int(100 * free / gpu.total_bytes) / 100


def _free_memory_remedy(gpu: Gpu, free: int) -> str:
    most = largest_utilization(gpu, free)
    return f"use --gpu-memory-utilization {most:g} or less, or free the GPU of other processes"


def memory_reasons(
    situations: Sequence[Situation], stages: Sequence[StageBudget], plan: KvCachePlan, free: FreeMemory, fit: Fit
) -> tuple[Reason, ...]:
    """Return why the boot stops, the earliest stage first; graph capture before 0.20 comes last and may only warn."""
    for situation, stage in zip(situations, stages, strict=True):
        reason = out_of_memory(situation, stage, free.bytes, fit)
        if reason is not None:
            return (reason,)
    reserved = _frontend_takes_it_all(situations[0], stages)
    if reserved is not None:
        return (reserved,)
    if plan.refusal:
        return (_kv_reason(situations[plan.binding_stage], plan),)
    fewer = _fewer_states_than_sequences(situations[0], plan)
    if fewer is not None:
        return (fewer,)
    graphs = (_graph_capture(situation, stage) for situation, stage in zip(situations, stages, strict=True))
    return tuple(reason for reason in graphs if reason is not None)[:1]


def _frontend_takes_it_all(situation: Situation, stages: Sequence[StageBudget]) -> Reason | None:
    """vLLM `multimodal.gpu_ipc_memory.reserve_mm_ipc_gpu_memory`, since 0.25."""
    reserve, least = situation.args.frontend_bytes, min(stage.available.bytes for stage in stages)
    if not reserve or reserve < least:
        return None
    return Reason(
        rule="mm_ipc_reserve",
        field="mm_ipc_gpu_memory_gb",
        message=f"{in_gib(reserve)} for decoding images leave nothing of the {in_gib(max(0, least))} for the KV cache.",
        remedy="lower --mm-ipc-gpu-memory-gb, or raise --gpu-memory-utilization",
        level="does_not_fit",
    )


def _fewer_states_than_sequences(situation: Situation, plan: KvCachePlan) -> Reason | None:
    """vLLM `CompilationConfig.resolve_cudagraph_mode_and_sizes`, since 0.20: each sequence of a graph has a state."""
    args, blocks = situation.args, plan.num_gpu_blocks
    if not needs_a_state_each(situation) or args.max_num_seqs <= blocks:
        return None
    return Reason(
        rule="mamba_blocks_lt_seqs",
        field="max_num_seqs",
        message=f"{blocks:,} blocks keep no state for each of max_num_seqs {args.max_num_seqs:,} sequences.",
        remedy=f"use --max-num-seqs {blocks} or less, or raise --gpu-memory-utilization",
        level="does_not_fit",
    )


def needs_a_state_each(situation: Situation) -> bool:
    """Whether each sequence of a whole graph must have a block for its state."""
    checked = situation.model.traits.has_states and situation.facts.version >= STATES_ARE_CHECKED
    return checked and "FULL" in situation.args.cudagraph_mode


def out_of_memory(situation: Situation, stage: StageBudget, free: int, fit: Fit) -> Reason | None:
    """Loading or profiling needs more than the device has free, whatever the utilization says."""
    weights = stage.bytes_of("weights")
    profiled = weights + stage.bytes_of("activation") + stage.bytes_of("non_torch")
    kv = situation.args.kv_cache_memory_bytes or 0
    where = f"rank {stage.pp_stage * situation.layout.tensor_parallel_size}"
    if weights > free:
        return _oom(
            f"the weights alone take {in_gib(weights)} on {where}, and {in_gib(free)} are free.",
            "spread them over more GPUs (--tensor-parallel-size), or take a larger GPU or a quantised checkpoint",
        )
    if profiled > free:
        message = f"weights and the profiling pass take {in_gib(profiled)} on {where}, and {in_gib(free)} are free."
        if _stops_sampling(situation, fit):
            remedy = "lower --max-num-seqs, or spread over more GPUs"
            return Reason(
                rule="sampler_oom", field="max_num_seqs", message=message, remedy=remedy, level="does_not_fit"
            )
        return _oom(message, "lower --max-num-batched-tokens or --max-num-seqs, or spread over more GPUs")
    if kv and profiled + kv > free:
        rule, field = ("cpu_kv_mem" if situation.gpu.is_cpu else "torch_oom"), "kv_cache_memory_bytes"
        message = (
            f"{in_words(kv)} of KV cache do not fit beside {in_gib(profiled)} on {where}: {in_gib(free)} are free."
        )
        remedy = f"give at most {max(0, free - profiled)} bytes"
        return Reason(rule=rule, field=field, message=message, remedy=remedy, level="does_not_fit")
    return None


def _stops_sampling(situation: Situation, fit: Fit) -> bool:
    """The first runner says so itself when sampling for all sequences is what does not fit."""
    return situation.samples and situation.args.model_runner == "v1" and sampler_binds(situation, fit.activation)


def _oom(message: str, remedy: str) -> Reason:
    return Reason(rule="torch_oom", field="tensor_parallel_size", message=message, remedy=remedy, level="does_not_fit")


def _kv_reason(situation: Situation, plan: KvCachePlan) -> Reason:
    """vLLM `check_enough_kv_cache_memory`."""
    if plan.refusal != "kv_one_request":
        more = _more_cache(situation, plan.needed_bytes - plan.checked_bytes)
        return Reason(
            rule=plan.refusal,
            field="gpu_memory_utilization",
            message=f"nothing is left for the KV cache ({in_words(plan.checked_bytes)} after everything else).",
            remedy=_any_of(*more, "lower --max-num-batched-tokens or --max-num-seqs", "spread over more GPUs"),
            level="does_not_fit",
        )
    if situation.args.older_engine:
        return _older_engine_reason(plan)
    longest = plan.estimated_max_model_len
    shorter = f"use --max-model-len {longest} or less" if longest else "spread over more GPUs"
    return Reason(
        rule="kv_one_request",
        field="max_model_len",
        message=(
            f"one request of {plan.max_model_len:,} tokens needs {in_words(plan.needed_bytes)} of KV cache and "
            f"{in_words(plan.checked_bytes)} are there; at most {longest:,} tokens would fit.{_note(situation)}"
        ),
        remedy=_any_of(shorter, *_more_cache(situation, plan.needed_bytes - plan.checked_bytes), *_smaller(situation)),
        level="does_not_fit",
    )


def _note(situation: Situation) -> str:
    """From 0.14 to 0.16 vLLM held the layers of all stages against the memory of one."""
    layers, held = situation.model.num_layers, situation.layers
    if not situation.facts.checks_whole_model or held == layers:
        return ""
    return (
        f" vLLM {situation.facts.version} counts all {layers} layers against one stage's memory, which holds {held}: "
        "its estimate is that much too short, and other releases serve more."
    )


def _older_engine_reason(plan: KvCachePlan) -> Reason:
    """vLLM `worker.worker.raise_if_cache_size_invalid` of the first engine: blocks times their size."""
    held = plan.num_gpu_blocks * plan.block_size
    return Reason(
        rule="kv_max_len_v0",
        field="max_model_len",
        message=f"{plan.max_model_len:,} tokens are more than the {held:,} that the KV cache stores.",
        remedy=f"use --max-model-len {held} or less, or raise --gpu-memory-utilization",
        level="does_not_fit",
    )


def _any_of(*remedies: str) -> str:
    return ", or ".join(remedies)


def _more_cache(situation: Situation, missing_bytes: int) -> tuple[str, ...]:
    """The flag that sizes the cache here, with the least value that would do; none where no share is left to raise."""
    args = situation.args
    if args.num_gpu_blocks_override is not None:
        return ("raise or drop --num-gpu-blocks-override",)
    if args.kv_cache_memory_bytes is not None:
        return (f"use --kv-cache-memory-bytes {args.kv_cache_memory_bytes + missing_bytes} or more",)
    least = math.ceil(100 * (args.gpu_memory_utilization + missing_bytes / situation.gpu.total_bytes)) / 100
    return (f"raise --gpu-memory-utilization to {least:g}",) if least <= LARGEST_SENSIBLE_UTILIZATION else ()


def _smaller(situation: Situation) -> tuple[str, ...]:
    able = situation.args.kv_element_bytes > 1 and not situation.gpu.below(8)
    return ("use --kv-cache-dtype fp8",) if able else ()


def _graph_capture(situation: Situation, stage: StageBudget) -> Reason | None:
    """Before 0.20 graphs are captured outside the budget: too little there is an out-of-memory after a good sizing."""
    graphs = next(term for term in stage.terms if term.name == "cuda_graphs")
    if graphs.inside_budget or not graphs.bytes:
        return None
    room = stage.total_bytes - stage.requested_bytes - held_before_start_bytes(situation.layout)
    if graphs.high_bytes <= room:
        return None
    certain = graphs.low_bytes > room
    return Reason(
        rule="torch_oom",
        field="gpu_memory_utilization",
        message=(
            f"CUDA graphs take {in_gib(graphs.bytes)} outside the budget in this version, "
            f"and {in_gib(max(0, room))} are left there: "
            f"{'out of memory' if certain else 'capture may run out of memory'} after the cache was sized."
        ),
        remedy="lower --gpu-memory-utilization, capture fewer sizes, or use --enforce-eager",
        level="does_not_fit" if certain else "warn",
    )
