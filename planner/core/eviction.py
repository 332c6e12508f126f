"""Ways to forget part of a request's cache, which vLLM does not have: what they would hold, and what comes nearest."""

from collections.abc import Sequence
from dataclasses import replace

from planner.core.capacity import RequestClass, mix_capacity
from planner.core.estimate import KvCache
from planner.core.technique import Measure, Technique

ATTENTION_SINKS = 4
RECENT_TOKENS = 2044
HEAVY_HITTER_SHARE = 0.2

SINKS_PAPER = "https://arxiv.org/abs/2309.17453"
HEAVY_HITTERS_PAPER = "https://arxiv.org/abs/2306.14048"


def attention_sinks(mix: Sequence[RequestClass], cache: KvCache) -> Technique:
    """StreamingLLM: the first few tokens and a window of the latest are kept, the rest is dropped."""
    kept = ATTENTION_SINKS + RECENT_TOKENS
    return _eviction(
        name="streaming_llm",
        title="Attention sinks (StreamingLLM)",
        mix=mix,
        cache=cache,
        keeps={kind.name: min(kept, kind.total_tokens) for kind in mix},
        rule=f"Keeping {ATTENTION_SINKS} first and {RECENT_TOKENS:,} latest tokens of each request",
        caveat="What is dropped is forgotten: questions about the middle of a long text fail.",
        nearest="A model with sliding-window layers, or a smaller --max-model-len with the client cutting the history.",
        source=SINKS_PAPER,
    )


def heavy_hitters(mix: Sequence[RequestClass], cache: KvCache) -> Technique:
    """H2O: the tokens that got most attention so far are kept, and the latest."""
    return _eviction(
        name="h2o",
        title="Heavy hitters (H2O)",
        mix=mix,
        cache=cache,
        keeps={kind.name: max(1, round(HEAVY_HITTER_SHARE * kind.total_tokens)) for kind in mix},
        rule=f"Keeping {HEAVY_HITTER_SHARE:.0%} of the tokens of each request",
        caveat=(
            "Each head keeps other tokens, so no whole block comes free in a paged cache, and the attention weights "
            "that it sorts by are not kept by fused kernels."
        ),
        nearest="A smaller cache type; vLLM itself evicts only blocks that nobody uses, the least recently used first.",
        source=HEAVY_HITTERS_PAPER,
    )


def _eviction(
    *,
    name: str,
    title: str,
    mix: Sequence[RequestClass],
    cache: KvCache,
    keeps: dict[str, int],
    rule: str,
    caveat: str,
    nearest: str,
    source: str,
) -> Technique:
    pool = cache.pool
    whole = [replace(kind, shared_prefix_tokens=0) for kind in mix]
    cut = [replace(kind, prompt_tokens=keeps[kind.name], output_tokens=0) for kind in whole]
    before, after = mix_capacity(whole, pool).requests_at_once, mix_capacity(cut, pool).requests_at_once
    return Technique(
        name=name,
        title=title,
        in_vllm=False,
        since="",
        usable=False,
        effect=f"{rule} would hold {after:,} requests at once in place of {before:,}; vLLM does not have it.",
        measures=(Measure(label="requests at once", unit="requests", before=before, after=after),),
        caveat=caveat,
        nearest=nearest,
        source=source,
    )
