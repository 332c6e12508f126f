"""Whether vLLM schedules a step while the last one still runs, and how many are then in flight."""

from planner.core.engine import EngineArgs, EngineFacts, Version
from planner.core.hardware import Gpu
from planner.core.speculation import Speculation

ONLY_V1_IS_UNABLE = Version(0, 33)
STATES_FORBID_IT = (Version(0, 16), Version(0, 17))
ABLE_EXECUTORS = (None, "mp", "uni", "external_launcher")


def async_scheduling(
    args: EngineArgs,
    gpu: Gpu,
    facts: EngineFacts,
    *,
    runner: str,
    stages: int,
    speculation: Speculation | None,
    keeps_states: bool,
) -> bool:
    """Return whether scheduling is asynchronous (vLLM `VllmConfig.__post_init__`, 0.11 to 0.33)."""
    wanted = facts.async_scheduling_default if args.async_scheduling is None else args.async_scheduling
    if not wanted or gpu.is_cpu or args.setting("distributed_executor_backend") not in ABLE_EXECUTORS:
        return False
    first, until = STATES_FORBID_IT
    if keeps_states and first <= facts.version < until:
        return False
    if stages > 1 and not _over_stages(facts, runner):
        return False
    return unable_drafter(facts, runner, speculation) == ""


def _over_stages(facts: EngineFacts, runner: str) -> bool:
    return facts.async_over_stages == "always" or (facts.async_over_stages == "v2" and runner == "v2")


def unable_drafter(facts: EngineFacts, runner: str, speculation: Speculation | None) -> str:
    """Return why this drafter rules asynchronous scheduling out, "" where it does not."""
    if speculation is None or (runner == "v2" and facts.version >= ONLY_V1_IS_UNABLE):
        return ""
    if speculation.method not in facts.async_drafters:
        return f"speculative decoding by {speculation.method}"
    return "" if speculation.pads_batch else "disable_padded_drafter_batch"


def concurrent_batches(*, asynchronous: bool, runner: str, stages: int) -> int:
    """Return the batches that may be in flight at once (vLLM `VllmConfig.max_concurrent_batches`)."""
    if asynchronous and runner == "v2":
        return stages + 1
    return 2 if asynchronous and stages == 1 else stages
