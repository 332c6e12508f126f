"""How many requests the KV cache holds at once: by length, for a mix, with shared prefixes."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.core.errors import BadInput
from planner.core.units import cdiv, round_up

CURVE_START_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClass:
    """A kind of request: its share of the mix, tokens in and out, and a prefix it shares with its own kind.

    `concurrent` is how many of them come at once (a burst); None means only the share counts.
    """

    name: str
    share: float = 1.0
    prompt_tokens: int
    output_tokens: int
    shared_prefix_tokens: int = 0
    concurrent: int | None = None

    @property
    def total_tokens(self) -> int:
        """Tokens the request holds when it ends."""
        return self.prompt_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCost:
    """What a request takes of one KV-cache group: a block for every `block_size` tokens, `most_blocks` at most.

    `fixed_blocks` are taken whatever the length (recurrent states). Only groups that keep every token hold a shared
    prefix once for all (`keeps_prefix`).
    """

    block_size: int
    most_blocks: int | None = None
    fixed_blocks: int | None = None
    keeps_prefix: bool = True

    def blocks_of(self, tokens: int) -> int:
        """Return the blocks that a request of so many tokens holds in this group."""
        if self.fixed_blocks is not None:
            return self.fixed_blocks
        blocks = cdiv(tokens, self.block_size)
        return blocks if self.most_blocks is None else min(blocks, self.most_blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The block pool of one replica at the interval's low, central and high end; one block of it is the null block.

    All `groups` draw from it (none given: one group that keeps every token, in blocks of `block_size`).
    """

    block_size: int
    num_gpu_blocks: int
    low_blocks: int
    high_blocks: int
    groups: tuple[GroupCost, ...] = ()

    def usable(self, blocks: int) -> int:
        """Return the blocks that requests may hold (vLLM `BlockPool`: block 0 is never given out)."""
        return max(0, blocks - 1)

    def blocks_of(self, tokens: int) -> int:
        """Return the blocks that a request of so many tokens holds, over all groups."""
        if not self.groups:
            return cdiv(tokens, self.block_size)
        return sum(group.blocks_of(tokens) for group in self.groups)

    def whole_blocks_of(self, tokens: int) -> int:
        """Return the full blocks of a prefix of so many tokens that later requests find again."""
        if not self.groups:
            return tokens // self.block_size
        return sum(tokens // group.block_size for group in self.groups if group.keeps_prefix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Requests at once: central value and the interval that the KV bytes give it."""

    low_requests: int
    requests: int
    high_requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """Requests at once when each holds `context_tokens`."""

    context_tokens: int
    low_requests: int
    requests: int
    high_requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCapacity:
    """One request class: blocks of a request, how many run at once by themselves, and the waste in its last block."""

    name: str
    total_tokens: int
    blocks: int
    alone_at_once: int
    waste_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MixCapacity:
    """The mix in its shares: requests at once, and of a burst how many run and how many wait."""

    requests_at_once: int
    low_requests: int
    high_requests: int
    mean_blocks: float
    waste_share: float
    shared_prefix_blocks: int
    burst: int | None
    burst_running: int | None
    burst_waiting: int | None
    classes: tuple[ClassCapacity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the KV cache holds, from one length to a mix."""

    curve: tuple[CurvePoint, ...]
    requests_at_max_model_len: Count
    suggested_max_num_seqs: int
    p95_request_tokens: int
    tokens_where_kv_passes_weights: int | None
    sessions_where_kv_passes_weights: int | None
    bytes_per_full_request: int
    query_heads_per_kv_head: int
    mix: MixCapacity | None


def requests_at_once(pool: Pool, context_tokens: int) -> Count:
    """Return how many requests of one length the pool holds when all have reached it.

    A request takes whole blocks. Source: vLLM `KVCacheManager.allocate_slots`.
    """
    blocks = max(1, pool.blocks_of(context_tokens))
    low, central, high = (
        pool.usable(held) // blocks for held in (pool.low_blocks, pool.num_gpu_blocks, pool.high_blocks)
    )
    return Count(low_requests=low, requests=central, high_requests=high)


def curve(pool: Pool, max_model_len: int) -> tuple[CurvePoint, ...]:
    """Return requests at once for doubling lengths up to the maximum, which is always the last point."""
    lengths = []
    tokens = min(CURVE_START_TOKENS, max_model_len)
    while tokens < max_model_len:
        lengths.append(tokens)
        tokens *= 2
    return tuple(_curve_point(pool, length) for length in (*lengths, max_model_len))


def _curve_point(pool: Pool, context_tokens: int) -> CurvePoint:
    count = requests_at_once(pool, context_tokens)
    return CurvePoint(
        context_tokens=context_tokens,
        low_requests=count.low_requests,
        requests=count.requests,
        high_requests=count.high_requests,
    )


def p95_tokens(classes: Sequence[RequestClass]) -> int:
    """Return the total tokens that 95 % of the requests of the mix stay within."""
    whole = sum(kind.share for kind in classes)
    reached = 0.0
    for kind in sorted(classes, key=lambda kind: kind.total_tokens):
        reached += kind.share
        if reached >= 0.95 * whole - 1e-12:
            return kind.total_tokens
    raise BadInput(
        field="requests", message="the shares sum to nothing.", fix="give at least one class a share above 0"
    )


def mix_capacity(classes: Sequence[RequestClass], pool: Pool) -> MixCapacity:
    """Return how many requests of the mix, in its shares, run at once without preemption.

    Full blocks of a shared prefix are held once for all requests of the class (vLLM hashes whole blocks).
    """
    whole = sum(kind.share for kind in classes)
    prefix_blocks = sum(_prefix_blocks(kind, pool) for kind in classes)
    mean_blocks = sum(kind.share * _own_blocks(kind, pool) for kind in classes) / whole
    low, central, high = (
        int(max(0, pool.usable(held) - prefix_blocks) / mean_blocks)
        for held in (pool.low_blocks, pool.num_gpu_blocks, pool.high_blocks)
    )
    burst = sum(kind.concurrent for kind in classes if kind.concurrent) or None
    running = None if burst is None else _burst_running(classes, pool, prefix_blocks)
    tokens = sum(kind.share * (kind.total_tokens) for kind in classes)
    slots = sum(kind.share * round_up(kind.total_tokens, pool.block_size) for kind in classes)
    return MixCapacity(
        requests_at_once=central,
        low_requests=low,
        high_requests=high,
        mean_blocks=mean_blocks,
        waste_share=1 - tokens / slots,
        shared_prefix_blocks=prefix_blocks,
        burst=burst,
        burst_running=running,
        burst_waiting=None if burst is None or running is None else burst - running,
        classes=tuple(_class_capacity(kind, pool) for kind in classes),
    )


def _prefix_blocks(kind: RequestClass, pool: Pool) -> int:
    return pool.whole_blocks_of(min(kind.shared_prefix_tokens, kind.prompt_tokens))


def _own_blocks(kind: RequestClass, pool: Pool) -> int:
    return max(1, pool.blocks_of(kind.total_tokens) - _prefix_blocks(kind, pool))


def _burst_running(classes: Sequence[RequestClass], pool: Pool, prefix_blocks: int) -> int:
    """Admit the burst in turn, one of each class, until the next finds too few blocks free."""
    waiting = {kind.name: kind.concurrent or 0 for kind in classes}
    free, running = pool.usable(pool.num_gpu_blocks) - prefix_blocks, 0
    while any(waiting.values()):
        for kind in classes:
            if not waiting[kind.name]:
                continue
            free -= _own_blocks(kind, pool)
            if free < 0:
                return running
            waiting[kind.name] -= 1
            running += 1
    return running


def _class_capacity(kind: RequestClass, pool: Pool) -> ClassCapacity:
    prefix, own = _prefix_blocks(kind, pool), _own_blocks(kind, pool)
    return ClassCapacity(
        name=kind.name,
        total_tokens=kind.total_tokens,
        blocks=pool.blocks_of(kind.total_tokens),
        alone_at_once=max(0, pool.usable(pool.num_gpu_blocks) - prefix) // own,
        waste_share=1 - kind.total_tokens / round_up(kind.total_tokens, pool.block_size),
    )
