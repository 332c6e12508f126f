"""What this planner cannot size yet; it says so by name instead of guessing."""

from planner.core.engine import EngineArgs
from planner.core.errors import Unknown
from planner.core.hardware import Gpu

_NOT_YET = {
    "speculative_config": "a draft model is",
}
_PLANNED_DEVICES = ("cuda", "cpu")
_CONTEXT_PARALLEL = ("decode_context_parallel_size", "prefill_context_parallel_size")


def require_in_scope(args: EngineArgs) -> None:
    """Raise Unknown for the first flag whose effect on memory this planner cannot derive exactly."""
    for name, subject in _NOT_YET.items():
        if getattr(args, name):
            raise _not_planned(name, f"{subject} not planned yet.")
    for name in _CONTEXT_PARALLEL:
        if (getattr(args, name) or 1) > 1:
            raise _not_planned(name, "context parallelism is not planned yet.")


def require_planned_device(gpu: Gpu) -> None:
    """Raise Unknown for a platform on which vLLM measures memory in a way that this planner does not follow."""
    if gpu.device_type not in _PLANNED_DEVICES:
        raise Unknown(
            field="gpu",
            message=f"vLLM on {gpu.name} ({gpu.device_type}) is not planned yet.",
            fix="plan for an NVIDIA GPU, or for cpu",
        )


def _not_planned(name: str, message: str) -> Unknown:
    return Unknown(field=name, message=message, fix=f"drop --{name.replace('_', '-')} to plan the rest")
