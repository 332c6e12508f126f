"""vLLM's KV-cache planning: bytes -> blocks -> tokens and concurrency, version by version."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.core.engine import EngineFacts
from planner.core.kv_groups import KvGroups
from planner.core.kv_spec import KvSpec, RequestBounds, counted
from planner.core.kv_table import Group
from planner.core.units import cdiv

BLOCKS_WITHOUT_A_CACHE = 1


def kv_heads_per_rank(num_kv_heads: int, tensor_parallel_size: int) -> int:
    """Return the KV heads one rank holds (vLLM `ModelConfig.get_num_kv_heads`)."""
    return max(1, num_kv_heads // tensor_parallel_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCachePlan:
    """What vLLM makes of the available bytes.

    `refusal` is "" or the rule that stops the boot: `no_kv_memory`, `kv_one_request` (then `estimated_max_model_len` is
    the longest length that would fit, 0 if none) or `autofit_fail`. Blocks count the null block, as vLLM's log does;
    `tokens` is the log's figure, `blocks_per_request` what one request of `max_model_len` takes.
    """

    block_size: int
    max_model_len: int
    num_gpu_blocks: int
    tokens: int
    max_concurrency: float
    blocks_per_request: int
    bytes_per_block: int
    binding_stage: int
    needed_bytes: int
    checked_bytes: int
    estimated_max_model_len: int
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """The bytes of one stage that one request is held against, and what a request of some length needs there."""

    stage: int
    checked_bytes: int
    needed_bytes: Callable[[int], int]

    def fits(self, length: int) -> bool:
        return self.needed_bytes(length) <= self.checked_bytes

    def longest(self, at_most: int) -> int:
        """Return the longest length that fits, 0 if none: vLLM's binary search."""
        if not self.fits(1):
            return 0
        low, high = 1, at_most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.fits(middle) else (low, middle - 1)
        return low


def kv_cache_plan(
    groups: KvGroups,
    available_bytes: Sequence[int],
    *,
    max_model_len: int,
    bounds: RequestBounds,
    facts: EngineFacts,
    auto_max_model_len: bool = False,
    num_gpu_blocks_override: int | None = None,
) -> KvCachePlan:
    """Return blocks, tokens and concurrency of one replica, or the refusal.

    `available_bytes` has one figure a pipeline stage, that of its tightest rank: every rank counts its own blocks and
    all take the minimum. Source: vLLM `v1.core.kv_cache_utils.get_kv_cache_configs` (0.8.5 to 0.32),
    `v1.core.kv_cache_planning` (0.33).
    """
    caching = [stage for stage, size in enumerate(groups.bytes_per_block) if size]
    if not caching:
        return _without_cache(max_model_len)
    seen = [
        _seen_bytes(groups, s, available_bytes[s], facts, num_gpu_blocks_override) for s in range(len(groups.stages))
    ]
    counts = {stage: _blocks(seen[stage], groups.bytes_per_block[stage], num_gpu_blocks_override) for stage in caching}
    checks = _checks(groups, caching, seen, bounds, facts)
    length = _fitted(checks, max_model_len) if auto_max_model_len else max_model_len
    checked = _spoken_of(checks, length)
    binding = min(caching, key=lambda stage: counts[stage])
    per_request = groups.blocks_per_request(length, bounds)
    concurrency = _concurrency(groups, counts[binding], per_request, length, bounds, facts)
    refusal = _unfitted(checks) if auto_max_model_len else _refusal(checked, length)
    return KvCachePlan(
        block_size=min(group.spec.block_size for group in groups.groups),
        max_model_len=length,
        num_gpu_blocks=counts[binding],
        tokens=_tokens(groups, counts[binding], length, concurrency, bounds, facts),
        max_concurrency=concurrency,
        blocks_per_request=per_request,
        bytes_per_block=groups.bytes_per_block[binding],
        binding_stage=binding,
        needed_bytes=checked.needed_bytes(length),
        checked_bytes=checked.checked_bytes,
        estimated_max_model_len=checked.longest(max_model_len) if refusal else max_model_len,
        refusal=refusal,
    )


def least_available_bytes(
    groups: KvGroups, max_model_len: int, *, bounds: RequestBounds, facts: EngineFacts
) -> tuple[int, ...]:
    """Return the bytes that each stage must have for one request of this length, 1 at least; 0 where it caches nothing.

    Source: as `kv_cache_plan`.
    """
    caching = [stage for stage, size in enumerate(groups.bytes_per_block) if size]
    checks = _checks(groups, caching, [0] * len(groups.stages), bounds, facts) if caching else []
    if facts.checks_whole_model:
        return tuple(max(1, check.needed_bytes(max_model_len)) for check in checks for _ in groups.stages)
    least = {check.stage: max(1, check.needed_bytes(max_model_len) - check.checked_bytes) for check in checks}
    return tuple(least.get(stage, 0) for stage in range(len(groups.stages)))


def _without_cache(max_model_len: int) -> KvCachePlan:
    """A model that caches nothing still has the null block."""
    return KvCachePlan(
        block_size=1,
        max_model_len=max_model_len,
        num_gpu_blocks=BLOCKS_WITHOUT_A_CACHE,
        tokens=0,
        max_concurrency=0.0,
        blocks_per_request=0,
        bytes_per_block=0,
        binding_stage=0,
        needed_bytes=0,
        checked_bytes=0,
        estimated_max_model_len=max_model_len,
        refusal="",
    )


def _seen_bytes(groups: KvGroups, stage: int, available: int, facts: EngineFacts, override: int | None) -> int:
    """An override is the number of blocks; the check of one request sees it as memory only since 0.20.1."""
    if override is None or not facts.override_counts_as_memory:
        return available
    return override * groups.bytes_per_block[stage]


def _blocks(seen_bytes: int, bytes_per_block: int, override: int | None) -> int:
    return max(0, seen_bytes) // bytes_per_block if override is None else override


def _checks(
    groups: KvGroups, caching: Sequence[int], seen: Sequence[int], bounds: RequestBounds, facts: EngineFacts
) -> list[_Check]:
    """One request must fit every stage; from 0.14 to 0.16 the whole model had to fit the least of their memories."""
    if facts.checks_whole_model:
        least = min(range(len(seen)), key=lambda stage: seen[stage])
        block_bytes = max(group.stage_bytes for group in groups.groups)
        needed = _needed(groups.groups, (), block_bytes, bounds, facts)
        return [_Check(stage=least, checked_bytes=seen[least], needed_bytes=needed)]
    return [_stage_check(groups, stage, seen[stage], bounds, facts) for stage in caching]


def _stage_check(groups: KvGroups, stage: int, seen: int, bounds: RequestBounds, facts: EngineFacts) -> _Check:
    block_bytes = groups.bytes_per_block[stage]
    return _Check(
        stage=stage,
        checked_bytes=seen - (block_bytes if facts.withholds_null_block else 0),
        needed_bytes=_needed(groups.stages[stage], groups.cached[stage], block_bytes, bounds, facts),
    )


def _needed(
    held: Sequence[Group], cached: Sequence[KvSpec], block_bytes: int, bounds: RequestBounds, facts: EngineFacts
) -> Callable[[int], int]:
    """Return how the check of each era counts the bytes that one request of some length needs.

    `layers`: every layer by itself, as it was before any promotion (to 0.13); `first_group`: the first group stands for
    all (0.14 to 0.18); `groups`: the blocks of all groups, but layer by layer where there is one group of many pages
    (0.19 to 0.28); `blocks`: always the blocks of all groups.
    """
    counts = facts.kv_check_counts
    if counts == "layers":
        return _by_layer(cached, bounds)
    if counts != "blocks" and len(held) == 1 and held[0].uniform_type:
        return _by_layer(held[0].specs, bounds)
    counted = held[:1] if counts == "first_group" else held
    return lambda length: block_bytes * sum(group.blocks_per_request(length, bounds) for group in counted)


def _by_layer(specs: Sequence[KvSpec], bounds: RequestBounds) -> Callable[[int], int]:
    pages = [(spec, count * spec.page_bytes) for spec, count in counted(specs)]
    return lambda length: sum(size * spec.blocks_per_request(length, bounds) for spec, size in pages)


def _fitted(checks: Sequence[_Check], max_model_len: int) -> int:
    longest = min(check.longest(max_model_len) for check in checks)
    return min(max_model_len, longest) if longest else max_model_len


def _spoken_of(checks: Sequence[_Check], length: int) -> _Check:
    """The stages are checked in order, and the first that cannot hold one request is the one that vLLM speaks of."""
    if len(checks) == 1:
        return checks[0]
    short = next((check for check in checks if check.checked_bytes <= 0 or not check.fits(length)), None)
    return short or min(checks, key=lambda check: check.checked_bytes - check.needed_bytes(length))


def _concurrency(
    groups: KvGroups, num_blocks: int, per_request: int, max_model_len: int, bounds: RequestBounds, facts: EngineFacts
) -> float:
    """Blocks over the blocks of one request; before 0.27 groups of other pages counted by the first one's page."""
    if facts.concurrency_is_tokens_over_length:
        return num_blocks * groups.groups[0].spec.block_size / max_model_len
    if facts.kv_concurrency_by_group:
        return num_blocks / per_request
    needed = sum(group.blocks_per_request(max_model_len, bounds) * group.page_bytes for group in groups.groups)
    return num_blocks / cdiv(needed, groups.groups[0].page_bytes)


def _tokens(
    groups: KvGroups, num_blocks: int, max_model_len: int, concurrency: float, bounds: RequestBounds, facts: EngineFacts
) -> int:
    """The logged "KV cache size": since 0.20.1 the concurrency in tokens, before the blocks of one group in tokens."""
    if facts.kv_size_is_relative_to_length:
        return int(concurrency * max_model_len)
    smallest = min(group.spec.block_size for group in groups.groups)
    return num_blocks // len(groups.groups) * smallest * bounds.context_parallel


def _unfitted(checks: Sequence[_Check]) -> str:
    """vLLM fits the length before it checks the memory, so `auto` never hears that there is none."""
    return "" if all(check.fits(1) for check in checks) else "autofit_fail"


def _refusal(checked: _Check, length: int) -> str:
    if checked.checked_bytes <= 0:
        return "no_kv_memory"
    return "" if checked.fits(length) else "kv_one_request"
