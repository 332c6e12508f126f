"""What vLLM refuses before it measures any memory: one predicate a rule, in the order of a boot."""

from collections.abc import Callable
from dataclasses import dataclass

from planner.core.capture import compilation_settings
from planner.core.engine import EngineArgs, EngineFacts, ResolvedArgs, Version
from planner.core.hardware import Gpu
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.terms import Reason
from planner.core.tower_refusals import tower_refusals
from planner.core.weights import weight_refusals

FP16_REFUSED = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})
FLASHINFER_HEAD_SIZES = frozenset({64, 128, 256, 512})


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


Rule = Callable[[Case], Reason | None]


def broken_rules(case: Case) -> tuple[Reason, ...]:
    """Return every refusal and warning of the stages before memory is measured, in the order of a boot."""
    found = [reason for rule in RULES if (reason := rule(case)) is not None]
    towers = tower_refusals(case.model, case.layout, towers=case.resolved.towers, version=case.facts.version)
    return (*found, *weight_refusals(case.model, case.layout), *towers)


def _refuse(rule: str, field: str, message: str, remedy: str) -> Reason:
    return Reason(rule=rule, field=field, message=message, remedy=remedy)


def _warn(rule: str, field: str, message: str, remedy: str) -> Reason:
    return Reason(rule=rule, field=field, message=message, remedy=remedy, level="warn")


def max_model_len_above_derived(case: Case) -> Reason | None:
    """vLLM `config.model._get_and_verify_max_len`."""
    derived, asked = case.model.context.limit(case.facts.version), case.args.max_model_len
    if derived is None or not isinstance(asked, int) or asked <= derived:
        return None
    key = case.model.derived_max_model_len_key
    if case.args.env("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1":
        message = (
            f"{asked:,} is beyond the trained length of {derived:,} ({key}); positions past it may give wrong output."
        )
        return _warn("max_model_len_gt_derived", "max_model_len", message, f"use --max-model-len {derived}")
    return _refuse(
        "max_model_len_gt_derived",
        "max_model_len",
        f"{asked:,} is above the {derived:,} tokens this model was trained for ({key}).",
        f"use --max-model-len {derived}, extend the length with RoPE scaling through --hf-overrides, "
        "or set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 and answer for the quality",
    )


def max_model_len_not_positive(case: Case) -> Reason | None:
    """vLLM `config.model.ModelConfig`."""
    if case.resolved.max_model_len >= 1:
        return None
    message = f"{case.resolved.max_model_len} is not a positive length."
    return _refuse("max_model_len_not_positive", "max_model_len", message, "give a positive number of tokens, or auto")


def bfloat16_below_sm80(case: Case) -> Reason | None:
    """vLLM `platforms.cuda.check_if_supports_dtype`: asked for it is refused, by default it becomes float16."""
    if not case.gpu.below(8):
        return None
    if case.resolved.dtype == "bfloat16":
        message = f"{case.gpu.name} has no bfloat16 (compute capability below 8.0)."
        return _refuse("bf16_lt_sm80", "dtype", message, "use --dtype half")
    if case.model.dtype == "bfloat16" and case.resolved.dtype == "float16":
        message = f"{case.gpu.name} has no bfloat16, so vLLM falls back to float16 with its smaller range."
        return _warn("bf16_auto_fallback", "dtype", message, "nothing to do unless outputs overflow")
    return None


def float16_unsupported(case: Case) -> Reason | None:
    """vLLM `config.model._is_valid_dtype`, since 0.9.2."""
    since = case.facts.version >= Version(0, 9, 2)
    if not since or case.resolved.dtype != "float16" or case.model.model_type not in FP16_REFUSED:
        return None
    message = f"model type {case.model.model_type} overflows in float16."
    return _refuse("fp16_unsupported_model", "dtype", message, "use --dtype bfloat16, or float32")


def utilization_out_of_range(case: Case) -> Reason | None:
    """vLLM `config.cache.CacheConfig`."""
    if 0 < case.resolved.gpu_memory_utilization <= 1:
        return None
    message = f"{case.resolved.gpu_memory_utilization:g} is not a share of the GPU's memory."
    return _refuse("util_range", "gpu_memory_utilization", message, "give a number above 0 and at most 1, such as 0.9")


def more_ranks_than_gpus(case: Case) -> Reason | None:
    """vLLM `config.parallel`: World size is larger than the number of available GPUs."""
    needed = case.layout.gpus
    if case.gpu_count is None or needed <= case.gpu_count:
        return None
    at_hand = f"{case.gpu_count} GPU{'s are' if case.gpu_count > 1 else ' is'} at hand"
    return _refuse(
        "world_gt_gpus",
        "tensor_parallel_size",
        f"this layout needs {needed} GPUs and {at_hand}.",
        f"lower the parallel sizes until their product is at most {case.gpu_count}, or name more GPUs",
    )


def partition_does_not_match(case: Case) -> Reason | None:
    """vLLM `distributed.utils.get_pp_indices` with VLLM_PP_LAYER_PARTITION."""
    layers, stages = case.resolved.layers_per_stage, case.resolved.pipeline_parallel_size
    if len(layers) == stages and sum(layers) == case.model.num_layers:
        return None
    message = (
        f"{list(layers)} has {len(layers)} parts and {sum(layers)} layers; "
        f"{stages} and {case.model.num_layers} are needed."
    )
    return _refuse(
        "pp_partition_len", "VLLM_PP_LAYER_PARTITION", message, "give one number a stage, summing to all layers"
    )


def experts_asked_of_a_dense_model(case: Case) -> Reason | None:
    """vLLM `config.model.verify_with_parallel_config`."""
    if not case.args.enable_expert_parallel:
        return None
    message = f"{case.model.name} has no experts to spread."
    return _refuse("ep_dense", "enable_expert_parallel", message, "drop --enable-expert-parallel")


def balancing_without_experts(case: Case) -> Reason | None:
    """vLLM `config.parallel`."""
    if not case.args.enable_eplb or case.args.enable_expert_parallel:
        return None
    message = "expert load balancing needs expert parallelism."
    return _refuse("eplb_needs_ep", "enable_eplb", message, "drop --enable-eplb")


def batch_shorter_than_a_request(case: Case) -> Reason | None:
    """vLLM `config.scheduler`: without chunked prefill a whole prompt must fit one step."""
    resolved = case.resolved
    if resolved.enable_chunked_prefill or resolved.max_num_batched_tokens >= resolved.max_model_len:
        return None
    return _refuse(
        "batched_lt_len_nochunk",
        "max_num_batched_tokens",
        f"{resolved.max_num_batched_tokens:,} is below max_model_len {resolved.max_model_len:,}, chunked prefill off.",
        f"use --max-num-batched-tokens {resolved.max_model_len}, or --enable-chunked-prefill",
    )


def batch_smaller_than_seqs(case: Case) -> Reason | None:
    """vLLM `config.scheduler.verify_max_model_len`."""
    tokens, seqs = case.resolved.max_num_batched_tokens, case.resolved.max_num_seqs
    if tokens >= seqs:
        return None
    message = f"{tokens:,} tokens a step cannot serve max_num_seqs {seqs:,}."
    return _refuse(
        "batched_lt_seqs", "max_num_batched_tokens", message, f"use at least {seqs}, or --max-num-seqs {tokens}"
    )


def batch_larger_than_it_can_be(case: Case) -> Reason | None:
    """vLLM `config.scheduler`, a warning since 0.9.2."""
    resolved = case.resolved
    most = resolved.max_num_seqs * resolved.max_model_len
    if case.facts.version < Version(0, 9, 2) or resolved.max_num_batched_tokens <= most:
        return None
    message = f"{resolved.max_num_batched_tokens:,} is more than all sequences together can hold ({most:,} tokens)."
    return _warn("batched_gt_seqs_len", "max_num_batched_tokens", message, f"use --max-num-batched-tokens {most}")


def long_prefill_above_length(case: Case) -> Reason | None:
    """vLLM `config.scheduler`."""
    threshold = case.args.long_prefill_token_threshold
    if threshold is None or threshold <= case.resolved.max_model_len:
        return None
    message = f"{threshold:,} is above max_model_len {case.resolved.max_model_len:,}."
    return _refuse("long_prefill_gt_len", "long_prefill_token_threshold", message, "lower it to max_model_len or below")


def capture_sizes_conflict(case: Case) -> Reason | None:
    """vLLM `config.vllm`: a list of capture sizes and a maximum that is not its largest."""
    largest, sizes = case.args.max_cudagraph_capture_size, case.args.cudagraph_capture_sizes
    if largest is None:
        asked = compilation_settings(case.args).get("max_cudagraph_capture_size")
        largest = asked if isinstance(asked, int) else None
    if largest is None or not sizes or max(sizes) == largest:
        return None
    message = f"the largest size listed is {max(sizes)}, not {largest}."
    return _refuse("graph_sizes_conflict", "max_cudagraph_capture_size", message, "give only one of the two")


def fp8_cache_on_this_device(case: Case) -> Reason | None:
    """vLLM backend choice (`platforms.cuda`): below SM 89 only FlashInfer reads an fp8 cache, and only from SM 80."""
    if case.gpu.is_cpu or not case.resolved.kv_cache_dtype.startswith("fp8") or not case.gpu.below(8, 9):
        return None
    head_dim = case.model.head_dim
    if case.gpu.below(8) or head_dim not in FLASHINFER_HEAD_SIZES:
        why = "is too old for it" if case.gpu.below(8) else f"has no kernel for heads of {head_dim}"
        message = f"an fp8 KV cache cannot be read here: {case.gpu.name} {why}."
        return _refuse("fp8_kv_triton", "kv_cache_dtype", message, "use --kv-cache-dtype auto")
    message = f"on {case.gpu.name} an fp8 KV cache halves the bytes, not the compute, and needs FlashInfer installed."
    return _warn(
        "fp8_kv_fa", "kv_cache_dtype", message, "check output quality on your own prompts before relying on it"
    )


def block_size_of_the_backend(case: Case) -> Reason | None:
    """vLLM attention backends: FLASH_ATTN and TRITON_ATTN take multiples of 16, CPU_ATTN of 32."""
    step = 32 if case.gpu.is_cpu else 16
    if case.resolved.block_size % step == 0 and case.resolved.block_size > 0:
        return None
    message = f"no attention backend here takes blocks of {case.resolved.block_size} tokens."
    return _refuse("attn_none", "block_size", message, f"use a multiple of {step}, or leave it out")


def architecture_not_in_this_version(case: Case) -> Reason | None:
    """vLLM `model_executor.models.registry`: an architecture is served from one release on, some until another."""
    first, last, version = case.model.first, case.model.last, case.facts.version
    if (first is None or version >= first) and (last is None or version <= last):
        return None
    when = f"from {first} on" if first is not None and version < first else f"until {last}"
    message = f"{case.model.architecture} is served by vLLM {when}, not by {version}."
    return _refuse("arch_unsupported", "vllm_version", message, f"use a vLLM {when}")


RULES: tuple[Rule, ...] = (
    architecture_not_in_this_version,
    max_model_len_above_derived,
    max_model_len_not_positive,
    float16_unsupported,
    utilization_out_of_range,
    experts_asked_of_a_dense_model,
    balancing_without_experts,
    more_ranks_than_gpus,
    batch_shorter_than_a_request,
    batch_smaller_than_seqs,
    batch_larger_than_it_can_be,
    long_prefill_above_length,
    capture_sizes_conflict,
    partition_does_not_match,
    bfloat16_below_sm80,
    fp8_cache_on_this_device,
    block_size_of_the_backend,
)
