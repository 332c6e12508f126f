"""What the layers of a model keep, in words: how many of each kind, and how queries share keys and values."""

from collections import Counter
from collections.abc import Iterable

from planner.core.cache_layer import AttentionCache, Cache, CompressedCache, LatentCache, StateCache
from planner.core.decoder import Layer

STATE_NAMES = {
    "mamba1": "Mamba",
    "mamba2": "Mamba 2",
    "gdn": "gated delta net",
    "kda": "Kimi delta attention",
    "linear": "linear attention",
    "short_conv": "short convolution",
}
NOTHING = "keeps nothing"


def attention_kind(layers: Iterable[Layer]) -> str:
    """Return the kinds of a model's layers with their counts; a model of one kind is named without a count."""
    counts = Counter(_layer_words(layer) for layer in layers)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} x {words}" for words, count in counts.most_common())


def _layer_words(layer: Layer) -> str:
    kept = [cache_words(cache) for cache in layer.caches]
    return " and ".join(dict.fromkeys(kept)) or NOTHING


def cache_words(cache: Cache) -> str:
    """Return one cache in words."""
    match cache:
        case AttentionCache():
            return _attention_words(cache)
        case LatentCache():
            return "latent (MLA)" if cache.index_head_dim is None else "sparse latent (MLA with an indexer)"
        case CompressedCache():
            return f"compressed latent (1 in {cache.ratio})"
        case StateCache():
            return STATE_NAMES[cache.kind]


def _attention_words(cache: AttentionCache) -> str:
    if cache.shared:
        return "reads an earlier layer's cache"
    heads = sharing_words(cache.num_heads, cache.kv_heads)
    match cache.kind:
        case "sliding_window":
            return f"window of {cache.span:,} tokens, {heads}"
        case "chunked_local":
            return f"chunks of {cache.span:,} tokens, {heads}"
        case "cross":
            return f"cross attention, {heads}"
        case "encoder_only":
            return f"encoder only ({NOTHING}), {heads}"
        case _:
            return heads


def sharing_words(num_heads: int, kv_heads: int) -> str:
    """Return how query heads share keys and values."""
    if kv_heads == num_heads:
        return "multi-head (MHA)"
    return "multi-query (MQA)" if kv_heads == 1 else "grouped-query (GQA)"
