"""Pages of several sizes side by side in one block, as DeepSeek V4's compressed caches need them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from planner.core.engine import EngineFacts
from planner.core.kv_merge import is_one_type
from planner.core.kv_pages import cannot_plan
from planner.core.kv_spec import KvSpec, SpecKind
from planner.core.kv_table import Group, of_one_type
from planner.core.units import cdiv


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bucket:
    """Layers of one type; `by_page` has the layers of each page size, in order of appearance."""

    layers: tuple[int, ...]
    first: KvSpec
    by_page: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def balanced(self) -> bool:
        return len({len(layers) for _, layers in self.by_page}) == 1

    @property
    def patterns(self) -> int:
        """How often a layer of each page size comes; 0 where they come unevenly, as vLLM then loses some."""
        return self.repeats if self.balanced else 0

    @property
    def repeats(self) -> int:
        return max(len(layers) for _, layers in self.by_page)

    def widest_bytes(self, groups: int) -> int:
        return sum(cdiv(len(layers), groups) * page for page, layers in self.by_page)


def packed_groups(specs: Sequence[KvSpec], facts: EngineFacts, *, block_outermost: bool) -> tuple[Group, ...]:
    """Return groups whose pages of several sizes are packed side by side, or none where that is not done.

    Source: vLLM `_get_packed_kv_cache_groups` (0.29 on, where blocks are outermost); `group_and_unify_kv_cache_specs`
    (0.20 to 0.28, for latent windows).
    """
    if not facts.kv_packing or len({spec.page_bytes for spec in specs}) <= 1:
        return ()
    if facts.kv_packing.startswith("layout"):
        return _packed(specs, facts) if block_outermost else ()
    return _tuples(specs) if any(spec.kind is SpecKind.SLIDING_WINDOW_MLA for spec in specs) else ()


def _packed(specs: Sequence[KvSpec], facts: EngineFacts) -> tuple[Group, ...]:
    buckets = [_bucket(layers, specs) for layers in _typed(specs, facts)]
    least = max((b.repeats for b in buckets if b.balanced and len(b.by_page) > 1), default=0)
    repeats = best_repeats([b.repeats for b in buckets if b.balanced], least) if least else None
    states = {b for b in buckets if _is_state(b, repeats, facts)}
    anchor = max(b.widest_bytes(len(b.layers) if b in states else _count(b, repeats)) for b in buckets)
    counts = [_held(b, _count(b, repeats), anchor) if b in states else _count(b, repeats) for b in buckets]
    if any(count > 1 and count > bucket.patterns for bucket, count in zip(buckets, counts, strict=True)):
        raise cannot_plan(facts)
    return tuple(group for b, count in zip(buckets, counts, strict=True) for group in _split(b, count, specs))


def _typed(specs: Sequence[KvSpec], facts: EngineFacts) -> list[list[int]]:
    """Each layer joins the first bucket whose type it has; layers of one spec join the same."""
    buckets: list[list[int]] = []
    joined: dict[int, list[int]] = {}
    for layer, spec in enumerate(specs):
        if id(spec) not in joined:
            joined[id(spec)] = _bucket_for(spec, buckets, specs, facts)
        joined[id(spec)].append(layer)
    return buckets


def _bucket_for(spec: KvSpec, buckets: list[list[int]], specs: Sequence[KvSpec], facts: EngineFacts) -> list[int]:
    for bucket in buckets:
        if is_one_type([specs[bucket[0]], spec], states_by_page=facts.kv_states_by_page):
            return bucket
    buckets.append([])
    return buckets[-1]


def _bucket(layers: Sequence[int], specs: Sequence[KvSpec]) -> _Bucket:
    by_page: dict[int, list[int]] = {}
    for layer in layers:
        by_page.setdefault(specs[layer].page_bytes, []).append(layer)
    return _Bucket(
        layers=tuple(layers),
        first=specs[layers[0]],
        by_page=tuple((page, tuple(held)) for page, held in by_page.items()),
    )


def best_repeats(counts: Sequence[int], least: int) -> int:
    """Return the repeats of a group, `least` or more, that pad the fewest layers; the larger of equals.

    Source: vLLM `_approximate_gcd`.
    """
    most = max(counts)
    if least > most:
        return least
    return max(range(max(1, least), most + 1), key=lambda size: (-sum(-count % size for count in counts), size))


def _is_state(bucket: _Bucket, repeats: int | None, facts: EngineFacts) -> bool:
    """Whether a bucket may be split down to one layer a group; 0.29 did so with recurrent states alone."""
    if bucket.first.kind is SpecKind.MAMBA:
        return True
    if facts.kv_packing == "layout":
        return False
    if bucket.first.kind is SpecKind.CIRCULAR:
        return True
    return repeats is None and bucket.first.is_window


def _count(bucket: _Bucket, repeats: int | None) -> int:
    return cdiv(bucket.repeats, repeats) if bucket.balanced and repeats is not None else 1


def _held(bucket: _Bucket, count: int, anchor_bytes: int) -> int:
    """As many groups as let a block hold the states of each."""
    held = max(anchor_bytes // bucket.first.page_bytes, 1)
    return max(count, cdiv(len(bucket.layers), held))


def _split(bucket: _Bucket, count: int, specs: Sequence[KvSpec]) -> list[Group]:
    if count == 1:
        return [of_one_type(bucket.layers, [specs[layer] for layer in bucket.layers])]
    patterns = list(zip(*(layers for _, layers in bucket.by_page), strict=False))
    groups = []
    for number in range(count):
        layers = [layer for pattern in patterns[number::count] for layer in pattern]
        groups.append(of_one_type(layers, [specs[layer] for layer in layers]))
    return groups


def _tuples(specs: Sequence[KvSpec]) -> tuple[Group, ...]:
    """Latent layers in one group; windows, by block and width, in groups of as many tuples of page sizes."""
    latent = [layer for layer, spec in enumerate(specs) if spec.kind is SpecKind.MLA]
    windows: dict[tuple[int, int | None], list[int]] = {}
    for layer, spec in enumerate(specs):
        if spec.kind is SpecKind.SLIDING_WINDOW_MLA:
            windows.setdefault((spec.block_size, spec.sliding_window), []).append(layer)
    buckets = [_bucket(layers, specs) for layers in windows.values()]
    first = _bucket(latent, specs)
    size = best_repeats([first.repeats, *(bucket.repeats for bucket in buckets)], first.repeats)
    groups = [of_one_type(latent, [specs[layer] for layer in latent])]
    for bucket in buckets:
        groups += _split(bucket, cdiv(len(bucket.by_page[0][1]), size), specs)
    return tuple(groups)


def tuple_block_bytes(groups: Sequence[Group], facts: EngineFacts) -> int:
    """Return the bytes of a block that holds, for each page size, as many pages as the largest group has.

    0.20 to 0.22 took the page sizes of the latent group alone. Source: vLLM `_pool_bytes_per_block` (0.20 to 0.26).
    """
    counts = [Counter(spec.page_bytes for spec in group.specs) for group in groups]
    if facts.kv_packing == "tuples":
        return sum(counts[0]) * max(max(count.values(), default=0) for count in counts)
    pages = dict.fromkeys(page for count in counts for page in count)
    return sum(page * max(count[page] for count in counts) for page in pages)
