"""Where a boot stops for want of memory: at the start, loading, profiling, sizing the cache, or capturing graphs."""

import math
from collections.abc import Sequence

from planner.core.budget import StageBudget
from planner.core.calibration import Situation
from planner.core.engine import ResolvedArgs
from planner.core.hardware import Gpu
from planner.core.kv_cache import KvCachePlan
from planner.core.layout import Layout
from planner.core.slack import held_before_start_bytes
from planner.core.terms import Reason
from planner.core.units import in_gib, in_words

LARGEST_SENSIBLE_UTILIZATION = 0.97


def free_at_start_bytes(gpu: Gpu, layout: Layout, free_bytes: int | None) -> int:
    """Return the memory that vLLM finds free: what was said, less its own context when only an empty GPU is assumed."""
    return gpu.total_bytes - held_before_start_bytes(layout) if free_bytes is None else free_bytes


def free_memory_reason(gpu: Gpu, free_bytes: int | None, resolved: ResolvedArgs, layout: Layout) -> Reason | None:
    """vLLM `v1.worker.utils.request_memory`: free memory at start below total x utilization is refused (0.9.2 on).

    The check runs even when kv_cache_memory_bytes is given. On the CPU platform only without a KV size.
    """
    asked = gpu.total_bytes * resolved.gpu_memory_utilization
    if gpu.is_cpu:
        free = gpu.total_bytes if free_bytes is None else free_bytes
        if resolved.kv_cache_memory_bytes is not None or asked <= free:
            return None
        rule, remedy = "cpu_startup_mem", "lower --gpu-memory-utilization, or give --kv-cache-memory-bytes"
    else:
        free = free_at_start_bytes(gpu, layout, free_bytes)
        if asked <= free:
            return None
        rule, remedy = "free_memory", _free_memory_remedy(gpu, free)
    return Reason(
        rule=rule,
        field="gpu_memory_utilization",
        message=f"{in_gib(free)} of {in_gib(gpu.total_bytes)} are free at start, and {in_gib(asked)} are asked for.",
        remedy=remedy,
        level="does_not_fit",
    )


def largest_utilization(gpu: Gpu, free: int) -> float:
    """Return the largest gpu_memory_utilization, in hundredths, that the memory free at start allows."""
    return int(100 * free / gpu.total_bytes) / 100


def _free_memory_remedy(gpu: Gpu, free: int) -> str:
    most = largest_utilization(gpu, free)
    return f"use --gpu-memory-utilization {most:g} or less, or free the GPU of other processes"


def memory_reasons(
    situations: Sequence[Situation], stages: Sequence[StageBudget], plan: KvCachePlan, free_bytes: int | None
) -> tuple[Reason, ...]:
    """Return why the boot stops, the earliest stage first; graph capture before 0.20 comes last and may only warn."""
    for situation, stage in zip(situations, stages, strict=True):
        reason = _out_of_memory(situation, stage, free_bytes)
        if reason is not None:
            return (reason,)
    if plan.refusal:
        return (_kv_reason(situations[plan.binding_stage], plan),)
    graphs = (_graph_capture(situation, stage) for situation, stage in zip(situations, stages, strict=True))
    return tuple(reason for reason in graphs if reason is not None)[:1]


def _out_of_memory(situation: Situation, stage: StageBudget, free_bytes: int | None) -> Reason | None:
    """Loading or profiling needs more than the device has free, whatever the utilization says."""
    free = free_at_start_bytes(situation.gpu, situation.layout, free_bytes)
    if situation.gpu.is_cpu:
        free = situation.gpu.total_bytes if free_bytes is None else free_bytes
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
        return _oom(
            f"weights and the profiling pass take {in_gib(profiled)} on {where}, and {in_gib(free)} are free.",
            "lower --max-num-batched-tokens or --max-num-seqs, or spread over more GPUs",
        )
    if kv and profiled + kv > free:
        rule, field = ("cpu_kv_mem" if situation.gpu.is_cpu else "torch_oom"), "kv_cache_memory_bytes"
        message = (
            f"{in_words(kv)} of KV cache do not fit beside {in_gib(profiled)} on {where}: {in_gib(free)} are free."
        )
        remedy = f"give at most {max(0, free - profiled)} bytes"
        return Reason(rule=rule, field=field, message=message, remedy=remedy, level="does_not_fit")
    return None


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
    longest = plan.estimated_max_model_len
    shorter = f"use --max-model-len {longest} or less" if longest else "spread over more GPUs"
    return Reason(
        rule="kv_one_request",
        field="max_model_len",
        message=(
            f"one request of {plan.max_model_len:,} tokens needs {in_words(plan.needed_bytes)} of KV cache and "
            f"{in_words(plan.checked_bytes)} are there; at most {longest:,} tokens would fit."
        ),
        remedy=_any_of(shorter, *_more_cache(situation, plan.needed_bytes - plan.checked_bytes), *_smaller(situation)),
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
