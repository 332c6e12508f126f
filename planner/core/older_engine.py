"""When a release still falls back to vLLM's first engine (V0), whose memory is measured in another way."""

from planner.core.engine import EngineArgs, EngineFacts, Version
from planner.core.hardware import Gpu
from planner.core.traits import Traits

GONE = Version(0, 11)
SERVES_ALL_SINCE = Version(0, 10, 2)
SERVES_FLOAT32_SINCE = Version(0, 9, 2)
SERVES_STAGES_SINCE = Version(0, 9)


def why_the_older_engine(args: EngineArgs, gpu: Gpu, facts: EngineFacts, traits: Traits, dtype: str) -> str:
    """Return what makes this release serve a command with V0, "" where it does not.

    Source: vLLM `EngineArgs._is_v1_supported_oracle` (0.8.5 to 0.10.2).
    """
    version = facts.version
    if version >= GONE or gpu.is_cpu:
        return ""
    asked = {"VLLM_USE_V1=0": args.env("VLLM_USE_V1") == "0"}
    unserved = {
        "a GPU below compute capability 8.0": gpu.below(8),
        "an encoder-decoder": traits.encoder_decoder,
        "a recurrent state": traits.has_states,
    }
    first = {"float32": dtype == "float32" and version < SERVES_FLOAT32_SINCE}
    stages = (args.pipeline_parallel_size or 1) > 1 and args.setting("distributed_executor_backend") != "ray"
    first["pipeline stages without Ray"] = stages and version < SERVES_STAGES_SINCE
    causes = {**asked, **(unserved if version < SERVES_ALL_SINCE else {}), **first}
    return next((cause for cause, holds in causes.items() if holds), "")
