"""One layout of one model, as we plan it and as vLLM builds it."""

from planner.core.cache_layer import AttentionCache, CompressedCache, LatentCache, StateCache
from planner.core.layout import Layout, pipeline_split
from planner.core.model import model_from_config
from planner.core.tower_refusals import tower_refusals
from planner.core.tower_use import EVERY_TOWER
from planner.core.weights import rank_weights, weight_refusals

LENGTH_WITHOUT_A_KEY = 2048
HEADS_TEXT = "Total number of attention heads"
STAGES_TEXTS = ("Pipeline parallelism is not supported", "Specified KV sharing target layer")
CANNOT_DIVIDE = "what cannot be divided"
ATTENTION = {
    "full": "FullAttentionSpec",
    "sliding_window": "SlidingWindowSpec",
    "chunked_local": "ChunkedLocalAttentionSpec",
    "cross": "CrossAttentionSpec",
}
LATENT, WINDOW = "MLAAttentionSpec", "SlidingWindowMLASpec"
ASSERTED = frozenset({"kvheads_tp", "dim_tp", "tower_tp"})


def layout_of(model, *, tp=1, pp=1):
    """Return the layout whose stages vLLM would split by itself."""
    return Layout(
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=1,
        layers_per_stage=pipeline_split(model.num_layers, pp),
    )


def ours(config, *, tp=1, pp=1, rank=0, dtype=None, towers=EVERY_TOWER):
    """Return what we plan for one rank, in the words of the engine's answers; or the kind of refusal."""
    model = model_from_config(config, name="judged")
    layout = layout_of(model, tp=tp, pp=pp)
    refusals = (*weight_refusals(model, layout), *tower_refusals(model, layout, towers=towers))
    if refusals:
        return {"refused": CANNOT_DIVIDE if refusals[0].rule in ASSERTED else refusals[0].rule}
    stage, dtype = rank // tp, dtype or model.dtype
    weights = rank_weights(model, layout=layout, pp_stage=stage, dtype=dtype, towers=towers)
    return {
        "dtype": dtype,
        "max_model_len": model.context.default() or LENGTH_WITHOUT_A_KEY,
        "parameter_bytes": weights.parameter_bytes,
        "buffer_bytes": weights.buffer_bytes,
        **_cached(model, layout, stage),
    }


def _cached(model, layout, stage):
    """What the layers of one stage keep, as the engine names it, and how many of them keep something."""
    start, length = sum(layout.layers_per_stage[:stage]), layout.layers_per_stage[stage]
    caches = [cache for layer in model.layers[start : start + length] for cache in layer.caches]
    kept = [each for cache in caches for each in _described(cache, layout.tensor_parallel_size)]
    return {"kv": sorted(map(list, set(kept))), "kv_layers": len(kept)}


def _described(cache, tp):
    """Each spec of a cache: what holds keys and values, then what an indexer or a compressor keeps beside it."""
    match cache:
        case AttentionCache(shared=True):
            return []
        case AttentionCache(index_head_dim=index):
            own = (ATTENTION[cache.kind], max(1, cache.kv_heads // tp), cache.head_dim)
            return [own] if index is None else [own, (LATENT, 1, index)]
        case StateCache():
            return [("MambaSpec", 0, 0)]
        case LatentCache(index_head_dim=index):
            own = (LATENT, 1, cache.kv_lora_rank + cache.rope_head_dim)
            return [own] if index is None or cache.shares_index else [own, (LATENT, 1, _with_scales(index))]
        case CompressedCache():
            return list(_compressed(cache))


def _with_scales(index_head_dim):
    """An indexer's fp8 keys have an fp32 scale for each 128 elements."""
    return index_head_dim + index_head_dim // 128 * 4


def _compressed(cache):
    """DeepSeek V4: a window; where tokens share states, those and what is not yet compressed; the same for an index."""
    yield WINDOW, 1, cache.head_dim
    if cache.ratio > 1:
        overlap = 2 if cache.ratio == 4 else 1
        yield LATENT, 1, cache.head_dim
        yield WINDOW, 1, 2 * overlap * cache.head_dim
    if cache.index_head_dim is not None:
        yield LATENT, 1, _with_scales(cache.index_head_dim)
        yield WINDOW, 1, 4 * cache.index_head_dim


def vllms(engine, config, *, tp=1, pp=1, rank=0, dtype=None, device="meta", flags=None):
    """Return what vLLM built for the same rank; a refusal by its kind."""
    answer = engine.ask(
        "weights",
        config=config,
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        rank=rank,
        dtype=dtype,
        device=device,
        flags=flags or {},
    )
    if "refused" in answer:
        return {"refused": _kind(answer)}
    return {key: value for key, value in answer.items() if key != "model_class"}


def _kind(answer):
    """The heads are refused in words; what a model class cannot divide is an assertion, mostly without a text."""
    if HEADS_TEXT in answer["text"]:
        return "heads_tp"
    if answer["text"].startswith(STAGES_TEXTS) or "PPMissingLayer" in answer["text"]:
        return "pp_unsupported"
    return (
        CANNOT_DIVIDE
        if answer["refused"] in ("AssertionError", "ZeroDivisionError")
        else f"{answer['refused']}: {answer['text']}"
    )
