"""What pages save: against one reservation of the longest length a request, and by holding shared prefixes once."""

from collections.abc import Sequence
from dataclasses import replace

from planner.core.capacity import RequestClass, mix_capacity
from planner.core.errors import BadInput
from planner.core.estimate import KvCache
from planner.core.technique import Measure, Technique, requests_in_words

PAPER = "https://arxiv.org/abs/2309.06180"
PREFIX_MANUAL = "https://docs.vllm.ai/en/latest/design/prefix_caching.html"


def contiguous_waste_share(mix: Sequence[RequestClass], reserved_tokens: int) -> float:
    """Return the share of reserved memory that the mix never fills when each request reserves the longest length.

    So did servers before paging. Raises BadInput for a request that is longer than what is reserved for it.
    """
    longest = max(kind.total_tokens for kind in mix)
    if longest > reserved_tokens:
        raise BadInput(
            field="requests",
            message=f"a request of {longest:,} tokens is longer than max_model_len {reserved_tokens:,}.",
            fix="shorten it, or raise max_model_len",
        )
    return 1 - _mean_tokens(mix) / reserved_tokens


def _mean_tokens(mix: Sequence[RequestClass]) -> float:
    return sum(kind.share * kind.total_tokens for kind in mix) / sum(kind.share for kind in mix)


def paging(mix: Sequence[RequestClass], cache: KvCache) -> Technique:
    """Pages against one reservation of the longest length a request (vLLM `BlockPool`; the paper's section 2)."""
    pool = cache.pool
    paged = mix_capacity([replace(kind, shared_prefix_tokens=0) for kind in mix], pool)
    reserved = pool.usable(pool.num_gpu_blocks) * pool.block_size // cache.max_model_len
    wasted = contiguous_waste_share(mix, cache.max_model_len)
    return Technique(
        name="paging",
        title="Paged memory",
        in_vllm=True,
        since="every release",
        usable=True,
        effect=(
            f"Reserving {cache.max_model_len:,} tokens a request would leave {wasted:.1%} of the cache unused and hold "
            f"{requests_in_words(reserved)}; pages of {cache.block_size} tokens leave {paged.waste_share:.1%} and hold "
            f"{paged.requests_at_once:,}."
        ),
        measures=(
            Measure(label="unused memory", unit="share", before=wasted, after=paged.waste_share),
            Measure(label="requests at once", unit="requests", before=reserved, after=paged.requests_at_once),
        ),
        caveat="Counted when each request has its full length; before that a reservation is emptier still.",
        nearest="",
        source=PAPER,
    )


def prefix_sharing(mix: Sequence[RequestClass], cache: KvCache, *, on: bool) -> Technique:
    """Blocks of a common beginning held once for all who share it (vLLM automatic prefix caching)."""
    pool = cache.pool
    alone = mix_capacity([replace(kind, shared_prefix_tokens=0) for kind in mix], pool).requests_at_once
    shared = mix_capacity(mix, pool)
    together = shared.requests_at_once if on else alone
    return Technique(
        name="prefix_sharing",
        title="Shared prefixes",
        in_vllm=True,
        since="every release",
        usable=on,
        effect=_sharing_effect(shared.shared_prefix_blocks, alone, shared.requests_at_once, on=on),
        measures=(Measure(label="requests at once", unit="requests", before=alone, after=together),),
        caveat="Only whole blocks are shared, and only while somebody uses them or memory is not needed for others.",
        nearest="",
        source=PREFIX_MANUAL,
    )


def _sharing_effect(blocks: int, alone: int, shared: int, *, on: bool) -> str:
    if not blocks:
        return "No request class of this mix states a shared prefix of a whole block, so nothing is shared."
    held = (
        f"{blocks:,} blocks of shared prefixes are held once: {requests_in_words(shared)} at once in place of {alone:,}"
    )
    return f"{held}." if on else f"Off in this plan. With it, {held}."
