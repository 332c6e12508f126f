"""What a KV cache of fewer bytes a value does to a plan."""

from collections.abc import Sequence
from dataclasses import replace

from planner.core.cache_dtypes import CacheDtypeSupport
from planner.core.capacity import Pool, RequestClass, mix_capacity
from planner.core.estimate import KvCache
from planner.core.technique import Measure, Technique

MANUAL = "https://docs.vllm.ai/en/latest/features/quantization/quantized_kvcache.html"


def small_cache(
    kind: CacheDtypeSupport,
    cache: KvCache,
    mix: Sequence[RequestClass],
    *,
    replanned: KvCache | None,
    plain_bytes_per_head: int,
    fixed_blocks: bool,
) -> Technique:
    """A cache of fewer bytes a value: what it holds in the same memory, and whether this release and device read it.

    `replanned` is the cache with this type where it can be planned; elsewhere every page is taken to shrink as a plain
    head of `plain_bytes_per_head` does.
    """
    now_bytes = cache.bytes_per_token
    shrunk = kind.bytes_per_head / plain_bytes_per_head
    then_bytes = replanned.bytes_per_token if replanned else round(now_bytes * shrunk)
    before = mix_capacity(mix, cache.pool).requests_at_once
    resized = cache.pool if fixed_blocks else replanned.pool if replanned else _resized(cache, shrunk)
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


def _resized(cache: KvCache, shrunk: float) -> Pool:
    """The pool when every page takes a share of its bytes: every rank's blocks shrink alike, so the same rank binds."""
    page = cache.bytes_per_block * shrunk
    low, central, high = (
        max(0, int(held // page))
        for held in (cache.available.low_bytes, cache.available.bytes, cache.available.high_bytes)
    )
    return replace(cache.pool, num_gpu_blocks=central, low_blocks=low, high_blocks=high)
