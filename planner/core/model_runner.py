"""Which of vLLM's two model runners serves a command, and which states of a request it keeps."""

from planner.core.engine import EngineArgs, EngineFacts, Version
from planner.core.hardware import Gpu
from planner.core.speculation import Speculation
from planner.core.traits import Traits

LISTED_MAY_BE_HYBRID = Version(0, 27)
PCP_NEEDS_V2 = Version(0, 27)
KEEP_EVERY_STATE = frozenset(
    {
        "BambaForCausalLM",
        "FalconH1ForCausalLM",
        "FalconMambaForCausalLM",
        "GraniteMoeHybridForCausalLM",
        "JambaForCausalLM",
        "Mamba2ForCausalLM",
        "MambaForCausalLM",
        "NemotronHForCausalLM",
        "Zamba2ForCausalLM",
    }
)
RAW_LOGITS = frozenset({"raw_logits", "processed_logits"})


def model_runner(
    args: EngineArgs,
    gpu: Gpu,
    facts: EngineFacts,
    *,
    architecture: str,
    traits: Traits,
    quantised: bool,
    speculation: Speculation | None,
) -> str:
    """Return `v1` or `v2` (vLLM `VllmConfig.use_v2_model_runner`, 0.22 to 0.33)."""
    if gpu.is_cpu or facts.model_runner_v2 == "none":
        return "v1"
    asked = args.env("VLLM_USE_V2_MODEL_RUNNER")
    if asked in ("0", "1"):
        return "v2" if asked == "1" else "v1"
    if facts.model_runner_v2 != "nearly_all" and _only_v2_can(args, facts, speculation):
        return "v2"
    able = _is_default(facts, architecture, traits, quantised=quantised) and not lacking(args, facts, speculation)
    return "v2" if able else "v1"


def _only_v2_can(args: EngineArgs, facts: EngineFacts, speculation: Speculation | None) -> bool:
    drafts = speculation is not None and speculation.method == "dspark" and facts.version >= Version(0, 25)
    return drafts or (facts.version >= PCP_NEEDS_V2 and (args.prefill_context_parallel_size or 1) > 1)


def _is_default(facts: EngineFacts, architecture: str, traits: Traits, *, quantised: bool) -> bool:
    listed = architecture in facts.model_runner_v2_architectures
    match facts.model_runner_v2:
        case "listed_plain":
            return listed and not traits.experts and not quantised
        case "listed":
            return listed
        case "listed_or_dense":
            hybrid = traits.hybrid and not (listed and facts.version >= LISTED_MAY_BE_HYBRID)
            return not hybrid and not traits.attention_free and (listed or not traits.experts)
    return True


def lacking(args: EngineArgs, facts: EngineFacts, speculation: Speculation | None) -> tuple[str, ...]:
    """Return what the command asks for and the second runner of this release lacks (`_get_v2_..._features`)."""
    flags = tuple(name for name in facts.model_runner_v2_lacks if _asks(args, name, speculation))
    return flags if speculation is None else (*flags, *_drafting_it_lacks(facts, speculation))


def _asks(args: EngineArgs, name: str, speculation: Speculation | None) -> bool:
    if name == "raw_logits":
        return args.setting("logprobs_mode") in RAW_LOGITS
    if name == "every_state":
        return args.setting("mamba_cache_mode") == "all"
    if name == "eagle3_over_stages":
        stages = args.pipeline_parallel_size or 1
        return stages > 1 and speculation is not None and speculation.method == "eagle3"
    return bool(args.setting(name))


def _drafting_it_lacks(facts: EngineFacts, speculation: Speculation) -> tuple[str, ...]:
    if speculation.method in facts.model_runner_v2_lacks_drafters:
        return (f"speculative method {speculation.method}",)
    return ("parallel drafting",) if speculation.parallel and speculation.method not in ("dflash", "dspark") else ()


def prefix_caching(args: EngineArgs, facts: EngineFacts, *, architecture: str, traits: Traits) -> bool:
    """Return whether prefixes are cached; by default they are, but not by encoder-decoders.

    Source: vLLM `ModelConfig.is_prefix_caching_supported`, `MambaModelConfig` (0.10 to 0.33).
    """
    asked = args.enable_prefix_caching
    if not traits.has_states:
        return not traits.encoder_decoder if asked is None else asked
    match facts.hybrid_prefix_caching:
        case "never":
            return False
        case "some":
            return bool(asked) and architecture in KEEP_EVERY_STATE
        case "asked":
            return bool(asked)
    return not traits.attention_free if asked is None else asked


def mamba_cache_mode(
    args: EngineArgs, facts: EngineFacts, *, architecture: str, traits: Traits, caches_prefixes: bool, drafts: bool
) -> str:
    """Return which states of a request are kept: `none`, `align` or `all` (vLLM `MambaModelConfig`)."""
    if not traits.has_states or not caches_prefixes:
        return "none"
    keeps_all = facts.states_of_every_block and architecture in KEEP_EVERY_STATE
    asked = args.setting("mamba_cache_mode")
    if asked in ("align", "all"):
        return "align" if asked == "all" and architecture not in KEEP_EVERY_STATE else str(asked)
    aligned_for_drafts = drafts and Version(0, 20) <= facts.version < Version(0, 22)
    return "all" if keeps_all and not aligned_for_drafts else "align"
