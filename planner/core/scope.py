"""What this planner cannot size yet; it says so by name instead of guessing."""

from planner.core.engine import EngineArgs
from planner.core.errors import Unknown
from planner.core.hardware import Gpu

_PLANNED_DEVICES = ("cuda", "cpu")


def require_in_scope(args: EngineArgs) -> None:
    """Raise Unknown for the first flag whose effect on memory this planner cannot derive exactly."""
    if (args.prefill_context_parallel_size or 1) > 1:
        raise Unknown(
            field="prefill_context_parallel_size",
            message="context parallelism while prompts are read is not planned yet.",
            fix="drop --prefill-context-parallel-size to plan the rest",
        )


def require_planned_device(gpu: Gpu) -> None:
    """Raise Unknown for a platform on which vLLM measures memory in a way that this planner does not follow."""
    if gpu.device_type not in _PLANNED_DEVICES:
        raise Unknown(
            field="gpu",
            message=f"vLLM on {gpu.name} ({gpu.device_type}) is not planned yet.",
            fix="plan for an NVIDIA GPU, or for cpu",
        )
