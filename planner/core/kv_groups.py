"""Layers that share a block table: how vLLM groups the caches of a whole model, and what each stage holds of them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.core.engine import EngineFacts
from planner.core.errors import BadInput
from planner.core.kv_merge import can_merge, is_one_type
from planner.core.kv_packing import packed_groups, tuple_block_bytes
from planner.core.kv_pages import UnequalPages, cannot_plan, full_allocation, promoted, with_equal_pages
from planner.core.kv_spec import KvSpec, RequestBounds, distinct
from planner.core.kv_table import Group, of_one_spec, of_one_type
from planner.core.units import cdiv, round_up


@dataclass(frozen=True, slots=True, kw_only=True)
class KvGroups:
    """The groups of a model, and what each pipeline stage holds of them.

    `stages` has one tuple of groups a stage, in the order of `groups`; a group without a layer there is empty. `cached`
    has the specs of each stage's layers as they were before any grouping.
    """

    cached: tuple[tuple[KvSpec, ...], ...]
    groups: tuple[Group, ...]
    stages: tuple[tuple[Group, ...], ...]
    bytes_per_block: tuple[int, ...]

    def blocks_per_request(self, max_model_len: int, bounds: RequestBounds) -> int:
        """Return the blocks that one request of this length takes, over all groups."""
        return sum(group.blocks_per_request(max_model_len, bounds) for group in self.groups)


def kv_groups(
    stages: Sequence[Sequence[KvSpec]],
    *,
    facts: EngineFacts,
    hybrid_manager: bool = True,
    block_outermost: bool = False,
) -> KvGroups:
    """Return the groups of a model whose layers cache `stages`, a list of specs for a rank of each pipeline stage.

    `block_outermost` lays blocks out side by side, pages of several sizes within each. Raises BadInput where the
    release cannot plan such layers. Source: vLLM `get_kv_cache_groups` and `_project_kv_cache_groups_to_worker`.
    """
    specs = [spec for stage in stages for spec in stage]
    how = {"hybrid_manager": hybrid_manager, "block_outermost": block_outermost}
    if facts.kv_groups_of_whole_model:
        groups = tuple(model_groups(specs, facts, **how))
        held = tuple(tuple(group.within(start, end) for group in groups) for start, end in _ends(stages))
    else:
        held = tuple(
            tuple(group.moved(start) for group in model_groups(specs[start:end], facts, **how))
            for start, end in _ends(stages)
        )
        groups = _common(held)
    sized = held if facts.kv_types_split_by_stage else [_unsplit(groups, stage) for stage in held]
    return KvGroups(
        cached=tuple(tuple(stage) for stage in stages),
        groups=groups,
        stages=held,
        bytes_per_block=tuple(_bytes_per_block(stage, facts, block_outermost=block_outermost) for stage in sized),
    )


def _common(held: Sequence[tuple[Group, ...]]) -> tuple[Group, ...]:
    """Stages grouped each by itself must have come to like groups (vLLM `unify_kv_cache_configs`, to 0.10)."""
    caching = [stage for stage in held if stage]
    orders = [sorted((group.spec for group in stage), key=_order) for stage in caching]
    for order in orders[1:]:
        if any(own != other for own, other in zip(orders[0], order, strict=False)):
            raise BadInput(
                field="pipeline_parallel_size",
                message="this release groups the layers of each stage by itself, and the groups differ.",
                fix="choose stages with the same pattern of layers",
            )
    return caching[0] if caching else ()


def _order(spec: KvSpec) -> tuple[object, ...]:
    return spec.kind, spec.block_size, spec.num_kv_heads, spec.head_size, spec.sliding_window or 0


def _unsplit(groups: Sequence[Group], stage: Sequence[Group]) -> list[Group]:
    """From 0.11 to 0.16 a stage's share of a group of several pages was sized as if it held all of the group."""
    return [whole if whole.uniform_type else share for whole, share in zip(groups, stage, strict=True)]


def _ends(stages: Sequence[Sequence[KvSpec]]) -> list[tuple[int, int]]:
    ends, start = [], 0
    for stage in stages:
        ends.append((start, start + len(stage)))
        start += len(stage)
    return ends


def _bytes_per_block(groups: Sequence[Group], facts: EngineFacts, *, block_outermost: bool) -> int:
    """The widest group, its layers' pages side by side; 0 where nothing is cached (vLLM `_pool_bytes_per_block`)."""
    if len(groups) > 1 and all(group.uniform_type for group in groups) and facts.kv_packing in ("tuples", "buckets"):
        return tuple_block_bytes(groups, facts)
    if not block_outermost:
        return max((group.stage_bytes for group in groups), default=0)
    widest = max((sum(spec.page_bytes for spec in group.specs) for group in groups), default=0)
    return round_up(widest, math.lcm(*(spec.block_stride_alignment or 1 for group in groups for spec in group.specs)))


def model_groups(
    specs: Sequence[KvSpec], facts: EngineFacts, *, hybrid_manager: bool, block_outermost: bool
) -> Sequence[Group]:
    """Return the groups of all layers of a model, or of a stage where a release groups each by itself."""
    if specs and not (hybrid_manager and facts.has_hybrid_manager):
        specs = promoted(specs, facts)
    if not specs:
        return ()
    everything, kinds = range(len(specs)), distinct(specs)
    if can_merge(kinds):
        return (of_one_spec(everything, specs),)
    if facts.kv_types_share_a_group and is_one_type(kinds, states_by_page=facts.kv_states_by_page):
        return (of_one_type(everything, specs),)
    if packed := packed_groups(specs, facts, block_outermost=block_outermost):
        return packed
    return _page_groups(specs, facts)


def _page_groups(specs: Sequence[KvSpec], facts: EngineFacts) -> Sequence[Group]:
    try:
        equal = with_equal_pages(specs, facts)
    except UnequalPages:
        fallback = full_allocation(specs, facts)
        if fallback is None:
            raise cannot_plan(facts) from None
        return (of_one_type(range(len(fallback)), fallback),)
    return tuple(_equal_groups(equal, facts))


def _equal_groups(specs: Sequence[KvSpec], facts: EngineFacts) -> Iterable[Group]:
    """Groups of as many layers each; a few missing layers are padding.

    Source: vLLM `_get_kv_cache_groups_uniform_page_size`.
    """
    buckets = _buckets(specs, facts)
    size = group_size([len(bucket) for bucket in buckets], facts)
    for bucket in buckets:
        count = cdiv(len(bucket), size)
        for number in range(count):
            layers = (
                bucket[number::count] if facts.kv_groups_of_whole_model else bucket[number * size : (number + 1) * size]
            )
            yield of_one_spec(layers, [specs[layer] for layer in layers], padding=size - len(layers))


def group_size(counts: Sequence[int], facts: EngineFacts) -> int:
    """Return how many layers a group has: the fewest of a kind, or the most where they are nearly as many."""
    fewest, most = min(counts), max(counts)
    return most if most < fewest * facts.kv_group_size_ratio else fewest


def _buckets(specs: Sequence[KvSpec], facts: EngineFacts) -> list[list[int]]:
    equal: dict[KvSpec, list[int]] = {}
    by_identity: dict[int, list[int]] = {}
    for layer, spec in enumerate(specs):
        if id(spec) not in by_identity:
            by_identity[id(spec)] = equal.setdefault(spec, [])
        by_identity[id(spec)].append(layer)
    if not facts.kv_merges_before_grouping:
        return list(equal.values())
    buckets: list[tuple[list[KvSpec], list[int]]] = []
    for spec, layers in equal.items():
        for kinds, held in buckets:
            if can_merge([*kinds, spec]):
                kinds.append(spec)
                held.extend(layers)
                break
        else:
            buckets.append(([spec], list(layers)))
    return [layers for _, layers in buckets]
