"""What vLLM refuses of a command's numbers: the scheduler's, the graphs', adapters and drafts, offloading."""

from planner.core.async_scheduling import ABLE_EXECUTORS, unable_drafter
from planner.core.capture import asked_maximum, compilation_settings
from planner.core.engine import Version
from planner.core.model_runner import lacking
from planner.core.rule_case import Case, Rule, refuse, warn
from planner.core.terms import Reason


def utilization_out_of_range(case: Case) -> Reason | None:
    """vLLM `config.cache.CacheConfig`."""
    if 0 < case.resolved.gpu_memory_utilization <= 1:
        return None
    message = f"{case.resolved.gpu_memory_utilization:g} is not a share of the GPU's memory."
    return refuse("util_range", "gpu_memory_utilization", message, "give a number above 0 and at most 1, such as 0.9")


def batch_shorter_than_a_request(case: Case) -> Reason | None:
    """vLLM `config.scheduler`: without chunked prefill a whole prompt must fit one step."""
    resolved = case.resolved
    if resolved.enable_chunked_prefill or resolved.max_num_batched_tokens >= resolved.max_model_len:
        return None
    return refuse(
        "batched_lt_len_nochunk",
        "max_num_batched_tokens",
        f"{resolved.max_num_batched_tokens:,} is below max_model_len {resolved.max_model_len:,}, chunked prefill off.",
        f"use --max-num-batched-tokens {resolved.max_model_len}"
        + ("" if case.traits.encoder_decoder else ", or --enable-chunked-prefill"),
    )


def batch_smaller_than_seqs(case: Case) -> Reason | None:
    """vLLM `config.scheduler.verify_max_model_len`."""
    tokens, seqs = case.resolved.max_num_batched_tokens, case.resolved.max_num_seqs
    if tokens >= seqs:
        return None
    message = f"{tokens:,} tokens a step cannot serve max_num_seqs {seqs:,}."
    return refuse(
        "batched_lt_seqs", "max_num_batched_tokens", message, f"use at least {seqs}, or --max-num-seqs {tokens}"
    )


def more_active_than_there_are(case: Case) -> Reason | None:
    """vLLM `config.scheduler.verify_max_model_len`, since 0.31."""
    active, seqs = case.args.number("max_num_active_seqs"), case.resolved.max_num_seqs
    if case.version < Version(0, 31) or active is None or active <= seqs:
        return None
    message = f"{int(active):,} active sequences are more than max_num_seqs {seqs:,}."
    return refuse("active_gt_seqs", "max_num_active_seqs", message, f"use --max-num-active-seqs {seqs} or less")


def batch_larger_than_it_can_be(case: Case) -> Reason | None:
    """vLLM `config.scheduler`, a warning since 0.9.2."""
    resolved = case.resolved
    most = resolved.max_num_seqs * resolved.max_model_len
    if case.version < Version(0, 9, 2) or resolved.max_num_batched_tokens <= most:
        return None
    message = f"{resolved.max_num_batched_tokens:,} is more than all sequences together can hold ({most:,} tokens)."
    return warn("batched_gt_seqs_len", "max_num_batched_tokens", message, f"use --max-num-batched-tokens {most}")


def long_prefill_above_length(case: Case) -> Reason | None:
    """vLLM `config.scheduler`; an encoder-decoder's threshold is set to 0."""
    threshold = case.args.long_prefill_token_threshold
    if threshold is None or threshold <= case.resolved.max_model_len or case.traits.encoder_decoder:
        return None
    message = f"{threshold:,} is above max_model_len {case.resolved.max_model_len:,}."
    return refuse("long_prefill_gt_len", "long_prefill_token_threshold", message, "lower it to max_model_len or below")


def capture_sizes_conflict(case: Case) -> Reason | None:
    """vLLM `VllmConfig._set_cudagraph_sizes`: a list of sizes and a maximum that is not its largest, since 0.11.1."""
    listed = case.args.cudagraph_capture_sizes or compilation_settings(case.args).get("cudagraph_capture_sizes")
    largest, kept = asked_maximum(case.args), case.resolved.cudagraph_capture_sizes
    if largest is None or not listed or not kept or kept[-1] == largest:
        return None
    message = f"the largest size listed is {kept[-1]}, not {largest}."
    return refuse("graph_sizes_conflict", "max_cudagraph_capture_size", message, "give only one of the two")


def fewer_adapters_kept_than_used(case: Case) -> Reason | None:
    """vLLM `config.lora.LoRAConfig`."""
    kept, used = case.args.number("max_cpu_loras"), case.args.number("max_loras") or 1
    if not case.args.enable_lora or not kept or kept >= used:
        return None
    message = f"{int(kept)} adapters in host memory are fewer than the {int(used)} on the GPU."
    return refuse("lora_cpu_lt", "max_cpu_loras", message, f"use --max-cpu-loras {int(used)} or more")


def drafts_and_adapters_in_a_step(case: Case) -> Reason | None:
    """vLLM `EngineArgs.create_engine_config`, since 0.11.1: every sequence with its draft must fit one step."""
    tokens, seqs = case.resolved.max_num_batched_tokens, case.resolved.max_num_seqs
    needed = seqs * (case.resolved.num_speculative_tokens + 1)
    if not case.args.enable_lora or case.speculation is None or tokens >= needed or case.version < Version(0, 11, 1):
        return None
    message = f"{seqs:,} sequences with their drafts take {needed:,} tokens, and a step has {tokens:,}."
    remedy = f"use --max-num-batched-tokens {needed}, draft fewer tokens, or lower --max-num-seqs"
    return refuse("lora_spec_tokens", "max_num_batched_tokens", message, remedy)


def drafts_leave_no_room(case: Case) -> Reason | None:
    """vLLM `VllmConfig._set_max_num_scheduled_tokens`, since 0.28."""
    speculation, tokens = case.speculation, case.resolved.max_num_batched_tokens
    if speculation is None or case.version < Version(0, 28) or tokens > speculation.extra_slots:
        return None
    message = f"the draft alone takes {speculation.extra_slots} slots of a step of {tokens:,} tokens."
    return refuse("spec_slots", "max_num_batched_tokens", message, "raise it, or draft fewer tokens")


def asynchronous_scheduling_impossible(case: Case) -> Reason | None:
    """vLLM `VllmConfig.__post_init__`, since 0.11.1: asked for by name it stops instead of being turned off."""
    if not case.args.async_scheduling or case.gpu.is_cpu or case.version < Version(0, 11, 1):
        return None
    executor = case.args.setting("distributed_executor_backend")
    why = unable_drafter(case.facts, case.resolved.model_runner, case.speculation)
    if not why and executor not in ABLE_EXECUTORS:
        why = f"the {executor} executor"
    if not why:
        return None
    message = f"asynchronous scheduling does not go with {why}."
    return refuse("async_incompat", "async_scheduling", message, "use --no-async-scheduling, or leave the flag out")


def runner_lacks_a_feature(case: Case) -> Reason | None:
    """vLLM `VllmConfig._validate_v1_model_runner` (0.29 on) and `_validate_v2_model_runner` (0.22 on)."""
    runner = case.resolved.model_runner
    missing = _missing_in_v1(case) if runner == "v1" else _missing_in_v2(case)
    if not missing:
        return None
    message = f"model runner {runner.upper()}, forced by VLLM_USE_V2_MODEL_RUNNER, has no {missing[0]}."
    return refuse("v1_runner_features", "VLLM_USE_V2_MODEL_RUNNER", message, "leave the variable unset")


def _missing_in_v1(case: Case) -> tuple[str, ...]:
    if case.args.env("VLLM_USE_V2_MODEL_RUNNER") != "0" or case.version < Version(0, 29):
        return ()
    speculation = case.speculation
    features = {
        "prefill context parallelism": case.prefill_parallel_size > 1,
        "asynchronous scheduling over pipeline stages": _async_over_stages(case),
        "speculative decoding by dspark": speculation is not None and speculation.method == "dspark",
        "batch-sharded sampling": case.args.asks("enable_batch_sharded_sampling"),
    }
    return tuple(name for name, used in features.items() if used)


def _async_over_stages(case: Case) -> bool:
    wanted = bool(case.args.async_scheduling) and case.version >= Version(0, 31)
    return wanted and case.layout.pipeline_parallel_size > 1


def _missing_in_v2(case: Case) -> tuple[str, ...]:
    forced = case.args.env("VLLM_USE_V2_MODEL_RUNNER") == "1" and case.facts.model_runner_v2 != "none"
    return lacking(case.args, case.facts, case.speculation) if forced else ()


def older_engine_serves_it(case: Case) -> Reason | None:
    """vLLM `EngineArgs._is_v1_supported_oracle`, until 0.10.2: some commands fall back to the first engine."""
    if not case.resolved.older_engine:
        return None
    message = (
        f"{case.resolved.older_engine} makes vLLM {case.version} serve this with its first engine (V0), "
        "which measures memory in another way: the figures are those of the second."
    )
    return warn("v0_engine", "vllm_version", message, "plan for vLLM 0.11 or later")


def offloaded_groups_do_not_add_up(case: Case) -> Reason | None:
    """vLLM `config.offload.OffloadConfig`, since 0.17."""
    size, moved = case.args.number("offload_group_size") or 0, case.args.number("offload_num_in_group")
    steps = case.args.number("offload_prefetch_step")
    if size <= 0 and case.args.setting("offload_backend") != "prefetch":
        return None
    moved = 1 if moved is None else moved
    if moved > size:
        message = f"{int(moved)} layers of a group of {int(size)} cannot be offloaded."
        return refuse("offload_group", "offload_num_in_group", message, f"use {int(size)} at most, or larger groups")
    if steps is not None and steps < 1:
        message = f"layers cannot be fetched {int(steps)} steps ahead."
        return refuse("offload_group", "offload_prefetch_step", message, "use --offload-prefetch-step 1 or more")
    return None


RULES: tuple[Rule, ...] = (
    older_engine_serves_it,
    utilization_out_of_range,
    batch_shorter_than_a_request,
    batch_smaller_than_seqs,
    more_active_than_there_are,
    batch_larger_than_it_can_be,
    long_prefill_above_length,
    fewer_adapters_kept_than_used,
    drafts_and_adapters_in_a_step,
    offloaded_groups_do_not_add_up,
    asynchronous_scheduling_impossible,
    drafts_leave_no_room,
    capture_sizes_conflict,
    runner_lacks_a_feature,
)
