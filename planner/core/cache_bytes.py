"""What the layers of a model keep for one token, over a whole replica and before any release's block sizes."""

from collections.abc import Iterable

from planner.core.cache_layer import AttentionCache, Cache, CompressedCache, LatentCache
from planner.core.decoder import Layer

COMPRESSED_STATE_BYTES = 584
INDEX_GROUP = 128
INDEX_SCALE_BYTES = 4


def bytes_per_token(layers: Iterable[Layer], element_bytes: int) -> int:
    """Return what one more token costs: keys and values of every layer that keeps all of them."""
    return round(sum(_growing_bytes(cache, element_bytes) for layer in layers for cache in layer.caches))


def bytes_per_request(layers: Iterable[Layer], element_bytes: int, tokens: int) -> int:
    """Return what a request of so many tokens keeps: all of them, or those in the window; states are not counted."""
    return round(sum(_kept_bytes(cache, element_bytes, tokens) for layer in layers for cache in layer.caches))


def _kept_bytes(cache: Cache, element_bytes: int, tokens: int) -> float:
    if isinstance(cache, AttentionCache) and cache.kind in ("sliding_window", "chunked_local"):
        return 0 if cache.shared else min(tokens, cache.span or tokens) * _head_bytes(cache, element_bytes)
    return tokens * _growing_bytes(cache, element_bytes)


def _growing_bytes(cache: Cache, element_bytes: int) -> float:
    match cache:
        case AttentionCache():
            return 0 if cache.shared or cache.kind != "full" else _head_bytes(cache, element_bytes)
        case LatentCache():
            index = 0 if cache.index_head_dim is None or cache.shares_index else _index_bytes(cache.index_head_dim)
            return (cache.kv_lora_rank + cache.rope_head_dim) * element_bytes + index
        case CompressedCache():
            index = 0 if cache.index_head_dim is None else _index_bytes(cache.index_head_dim)
            return 0 if cache.ratio <= 1 else (COMPRESSED_STATE_BYTES + index) / cache.ratio
        case _:
            return 0


def _head_bytes(cache: AttentionCache, element_bytes: int) -> int:
    return cache.kv_heads * (cache.head_dim + (cache.value_head_dim or cache.head_dim)) * element_bytes


def _index_bytes(head_dim: int) -> int:
    """An indexer's key in 8 bits with a scale for each 128 (vLLM `DeepseekV32IndexerCache`)."""
    return head_dim + head_dim // INDEX_GROUP * INDEX_SCALE_BYTES
