"""What this planner cannot size yet; it says so by name instead of guessing."""

from planner.core.engine import EngineArgs, EngineFacts, Version
from planner.core.errors import Unknown
from planner.core.hardware import Gpu
from planner.core.model import Model

_PLANNED_DEVICES = ("cuda", "cpu")


REPLICATES_QUERIES = "VLLM_DCP_Q_REPLICATE"
REPLICATED_BY_DEFAULT = frozenset({"GlmMoeDsaForCausalLM"})
BY_DEFAULT_SINCE = Version(0, 29)


def require_in_scope(args: EngineArgs, model: Model, facts: EngineFacts) -> None:
    """Raise Unknown for the first flag whose effect on memory this planner cannot derive exactly."""
    if (args.prefill_context_parallel_size or 1) > 1:
        raise Unknown(
            field="prefill_context_parallel_size",
            message="context parallelism while prompts are read is not planned yet.",
            fix="drop --prefill-context-parallel-size to plan the rest",
        )
    if (args.decode_context_parallel_size or 1) > 1 and _replicates_queries(args, model, facts):
        raise Unknown(
            field="decode_context_parallel_size",
            message="queries kept whole on each rank of a decode context group are not planned yet.",
            fix=f"plan with {REPLICATES_QUERIES}=0",
        )


def _replicates_queries(args: EngineArgs, model: Model, facts: EngineFacts) -> bool:
    """Whether MLA's query projection is whole in each group (vLLM `DeepseekV2MLAAttention`, `set_dcp_defaults`)."""
    by_variable = args.env(REPLICATES_QUERIES)
    if by_variable is not None:
        return by_variable not in ("0", "False", "false")
    by_flag = args.setting("dcp_q_replicate")
    if by_flag is not None:
        return bool(by_flag)
    return model.architecture in REPLICATED_BY_DEFAULT and facts.version >= BY_DEFAULT_SINCE


def require_planned_device(gpu: Gpu) -> None:
    """Raise Unknown for a platform on which vLLM measures memory in a way that this planner does not follow."""
    if gpu.device_type not in _PLANNED_DEVICES:
        raise Unknown(
            field="gpu",
            message=f"vLLM on {gpu.name} ({gpu.device_type}) is not planned yet.",
            fix="plan for an NVIDIA GPU, or for cpu",
        )
