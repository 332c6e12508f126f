"""How one pool serves layers of unlike caches: whether the hybrid manager is on, and how pages lie in memory."""

from planner.core.cache_layer import CompressedCache
from planner.core.engine import EngineArgs, EngineFacts, Version
from planner.core.hardware import Gpu
from planner.core.json_flags import json_flag
from planner.core.model import Model
from planner.core.speculation import EAGLE_METHODS, speculation_of
from planner.core.traits import distinct_layers

CHUNKS_ALLOWED = "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE"
CPU_SINCE = Version(0, 10, 2)
EVENTS_ALLOWED_SINCE = Version(0, 20)
OFFLOADING_BY_FLAG_SINCE = Version(0, 11, 1)
OUTERMOST_SINCE = Version(0, 29)
OFFLOADING_CONNECTOR = "OffloadingConnector"


def uses_hybrid_manager(args: EngineArgs, *, model: Model, gpu: Gpu, facts: EngineFacts) -> bool:
    """Return whether layers of unlike caches keep what each needs; without it all keep what full attention does.

    Source: vLLM `VllmConfig.__post_init__` (0.9 to 0.33).
    """
    if args.disable_hybrid_kv_cache_manager:
        return False
    if gpu.is_cpu and facts.version < CPU_SINCE:
        return False
    if model.traits.chunked and not _chunks_allowed(args):
        return False
    return _connector_allows(args, facts) and not _events_forbid(args, facts)


def _chunks_allowed(args: EngineArgs) -> bool:
    """Chunked local attention runs without the manager by default, and always beside an EAGLE drafter."""
    speculation = speculation_of(args)
    drafts = speculation is not None and speculation.method in EAGLE_METHODS
    return args.env(CHUNKS_ALLOWED) == "1" and not drafts


def _events_forbid(args: EngineArgs, facts: EngineFacts) -> bool:
    return facts.version < EVENTS_ALLOWED_SINCE and bool(args.setting("kv_events_config"))


def _connector_allows(args: EngineArgs, facts: EngineFacts) -> bool:
    """Since 0.22 connectors that know the manager keep it on; before, any turned it off unless it was asked for."""
    connectors = kv_connectors(args, facts)
    if not connectors:
        return True
    if facts.version < Version(0, 22):
        return args.disable_hybrid_kv_cache_manager is False and facts.version >= Version(0, 13)
    return all(name in facts.hybrid_connectors for name in connectors)


def kv_connectors(args: EngineArgs, facts: EngineFacts) -> tuple[str, ...]:
    """Return the KV connectors that a command sets up, those inside a MultiConnector one by one."""
    stated = json_flag(args, "kv_transfer_config")
    name = str(stated.get("kv_connector") or "")
    if name == "MultiConnector":
        extra = stated.get("kv_connector_extra_config")
        inner = extra.get("connectors") if isinstance(extra, dict) else None
        parts = inner if isinstance(inner, list) else []
        return tuple(str(part.get("kv_connector") or "") for part in parts if isinstance(part, dict))
    if name:
        return (name,)
    offloads = args.setting("kv_offloading_size") is not None and facts.version >= OFFLOADING_BY_FLAG_SINCE
    if not offloads:
        return ()
    return ("LMCacheConnectorV1",) if args.setting("kv_offloading_backend") == "lmcache" else (OFFLOADING_CONNECTOR,)


def blocks_lie_outermost(model: Model, facts: EngineFacts) -> bool:
    """Whether the pages of all layers of a block lie together, of several sizes (vLLM 0.29 on, DeepSeek V4).

    Source: vLLM `v1.attention.backends.utils.resolve_kv_cache_layout`, `DeepseekV4IndexerBackend`.
    """
    compressed = (isinstance(c, CompressedCache) for layer in distinct_layers(model.decoder) for c in layer.caches)
    return facts.version >= OUTERMOST_SINCE and any(compressed)
