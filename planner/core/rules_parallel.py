"""What vLLM refuses of a layout: ranks that are not there, experts, data and context parallelism, stages."""

from planner.core.engine import Version
from planner.core.rule_case import Case, Rule, refuse
from planner.core.terms import Reason

EXTERNAL_BALANCER = ("data_parallel_external_lb", "data_parallel_rank")


def external_replica_of_a_dense_model(case: Case) -> Reason | None:
    """vLLM `EngineArgs.create_engine_config`, since 0.21."""
    asked = next((name for name in EXTERNAL_BALANCER if case.args.setting(name) not in (None, False)), "")
    if not asked or case.layout.data_parallel_size == 1 or case.traits.experts or case.version < Version(0, 21):
        return None
    message = f"{case.model.name} has no experts: its replicas share nothing behind an outside balancer."
    return refuse("dp_dense_external", asked, message, "start independent servers, without --data-parallel flags")


def offline_replicas_of_a_dense_model(case: Case) -> Reason | None:
    """vLLM `ParallelConfig.__post_init__`, since 0.14: replicas that only the environment names."""
    replicas = case.args.env("VLLM_DP_SIZE") or "1"
    several = replicas.isdigit() and int(replicas) > 1 and case.layout.data_parallel_size == 1
    if not several or case.traits.experts or case.version < Version(0, 14):
        return None
    message = f"{case.model.name} has no experts, so that each of {replicas} replicas is an engine of its own."
    return refuse("dp_dense_offline", "VLLM_DP_SIZE", message, "run separate engines")


def more_ranks_than_gpus(case: Case) -> Reason | None:
    """vLLM `config.parallel`: World size is larger than the number of available GPUs."""
    layout, needed = case.layout, case.layout.world_size * case.prefill_parallel_size
    if case.gpu_count is None or needed * layout.data_parallel_size <= case.gpu_count:
        return None
    at_hand = f"{case.gpu_count} GPU{'s are' if case.gpu_count > 1 else ' is'} at hand"
    if needed <= case.gpu_count:
        message = f"{layout.data_parallel_size} replicas need {layout.gpus} GPUs and {at_hand}."
        remedy = f"use --data-parallel-size {case.gpu_count // needed}, or name more GPUs"
        return refuse("dp_rank_bounds", "data_parallel_size", message, remedy)
    return refuse(
        "world_gt_gpus",
        "tensor_parallel_size",
        f"this layout needs {needed * layout.data_parallel_size} GPUs and {at_hand}.",
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
    return refuse(
        "pp_partition_len", "VLLM_PP_LAYER_PARTITION", message, "give one number a stage, summing to all layers"
    )


def experts_asked_of_a_dense_model(case: Case) -> Reason | None:
    """vLLM `ModelConfig._verify_with_expert_parallelism`."""
    if not case.args.enable_expert_parallel or case.traits.experts:
        return None
    message = f"{case.model.name} has no experts to spread."
    return refuse("ep_dense", "enable_expert_parallel", message, "drop --enable-expert-parallel")


def balancing_without_experts(case: Case) -> Reason | None:
    """vLLM `ParallelConfig._validate_parallel_config`: experts are moved between ranks of TP x PCP x DP."""
    if not case.args.enable_eplb:
        return None
    if not case.args.enable_expert_parallel:
        message = "expert load balancing needs expert parallelism."
        remedy = "add --enable-expert-parallel" if case.traits.experts else "drop --enable-eplb"
        return refuse("eplb_needs_ep", "enable_eplb", message, remedy)
    layout = case.layout
    if layout.tensor_parallel_size * layout.data_parallel_size * case.prefill_parallel_size > 1:
        return None
    message = "expert load balancing needs experts on more than one rank."
    return refuse("eplb_needs_ep", "enable_eplb", message, "use more tensor- or data-parallel ranks, or drop it")


def cache_split_does_not_divide_the_ranks(case: Case) -> Reason | None:
    """vLLM `ParallelConfig._validate_parallel_config`, since 0.10.2."""
    tp, dcp, pcp = case.layout.tensor_parallel_size, case.context_parallel_size, case.prefill_parallel_size
    if dcp == 1 or case.version < Version(0, 10, 2):
        return None
    if pcp == 1 and tp % dcp == 0:
        return None
    if pcp > 1 and dcp in (pcp, tp * pcp):
        return None
    message = f"{dcp} ranks of decode context parallelism do not divide tensor_parallel_size {tp}."
    if pcp > 1:
        message = f"with {pcp} ranks of prefill context parallelism it must be 1, {pcp} or {tp * pcp}, not {dcp}."
    return refuse("dcp_tp", "decode_context_parallel_size", message, "choose a divisor of the tensor-parallel size")


def cache_split_needs_copies_of_heads(case: Case) -> Reason | None:
    """vLLM `ModelConfig.verify_with_parallel_config`, since 0.27: only copies of a KV head can share its tokens."""
    tp, dcp, model = case.layout.tensor_parallel_size, case.context_parallel_size, case.model
    if dcp == 1 or case.traits.latent or case.version < Version(0, 27) or not model.num_kv_heads:
        return None
    copies, queries = tp // model.num_kv_heads, model.num_attention_heads // model.num_kv_heads
    if tp > model.num_kv_heads and dcp <= copies and queries % dcp == 0:
        return None
    message = f"{model.num_kv_heads} KV heads on {tp} ranks leave {max(1, copies)} to share one, not {dcp}."
    if tp > model.num_kv_heads and dcp <= copies:
        message = f"{queries} query heads a KV head cannot be split over {dcp} ranks."
    remedy = "raise --tensor-parallel-size, or use --decode-context-parallel-size 1"
    return refuse("dcp_gqa", "decode_context_parallel_size", message, remedy)


RULES: tuple[Rule, ...] = (
    external_replica_of_a_dense_model,
    offline_replicas_of_a_dense_model,
    balancing_without_experts,
    cache_split_does_not_divide_the_ranks,
    experts_asked_of_a_dense_model,
    cache_split_needs_copies_of_heads,
    more_ranks_than_gpus,
    partition_does_not_match,
)
