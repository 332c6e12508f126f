"""What a KV cache of fewer bytes a value does to a plan."""

from collections.abc import Sequence

from planner.core.cache_dtypes import CacheDtypeSupport
from planner.core.capacity import Pool, RequestClass, mix_capacity
from planner.core.estimate import KvCache
from planner.core.model import Model
from planner.core.technique import Measure, Technique, pool_of

MANUAL = "https://docs.vllm.ai/en/latest/features/quantization/quantized_kvcache.html"


def small_cache(
    kind: CacheDtypeSupport, model: Model, cache: KvCache, mix: Sequence[RequestClass], *, fixed_blocks: bool
) -> Technique:
    """A cache of fewer bytes a value: what it holds in the same memory, and whether this release and device read it."""
    now_bytes = cache.bytes_per_token
    then_bytes = model.num_layers * model.num_kv_heads * kind.bytes_per_head
    pool = pool_of(cache)
    before = mix_capacity(mix, pool).requests_at_once
    resized = pool if fixed_blocks else _resized(cache, now_bytes, then_bytes)
    after = mix_capacity(mix, resized).requests_at_once
    return Technique(
        name=kind.name,
        title=f"{kind.bits}-bit cache ({kind.name})",
        in_vllm=True,
        since=str(kind.since),
        usable=kind.supported,
        effect=_effect(kind, now_bytes, then_bytes, f"The same memory would hold {after:,} requests, not {before:,}."),
        measures=(
            Measure(label="bytes a token", unit="bytes", before=now_bytes, after=then_bytes),
            Measure(label="requests at once", unit="requests", before=before, after=after),
        ),
        caveat=_caveat(kind),
        nearest="",
        source=MANUAL,
    )


def _effect(kind: CacheDtypeSupport, now_bytes: int, then_bytes: int, holds: str) -> str:
    if not kind.supported:
        return f"Not here: {kind.why}. {holds}"
    if then_bytes >= now_bytes:
        return f"This plan's cache takes no more already: {now_bytes:,} B a token."
    return f"A token would take {then_bytes:,} B in place of {now_bytes:,}. {holds}"


def _caveat(kind: CacheDtypeSupport) -> str:
    how = f"{kind.why[:1].upper()}{kind.why[1:]}. " if kind.supported else ""
    return f"{how}Answers change a little; check them on your own prompts."


def _resized(cache: KvCache, now_bytes: int, then_bytes: int) -> Pool:
    """The pool when a token takes other bytes: every rank's blocks shrink alike, so the same rank binds."""
    page = cache.bytes_per_token_per_rank * cache.block_size * then_bytes / now_bytes
    low, central, high = (
        int(held // page) for held in (cache.available.low_bytes, cache.available.bytes, cache.available.high_bytes)
    )
    return Pool(
        block_size=cache.block_size,
        num_gpu_blocks=max(0, central),
        low_blocks=max(0, low),
        high_blocks=max(0, high),
    )
