"""The KV cache of one deployment: what its layers keep, how vLLM groups it, and what each term of bytes buys."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from planner.core.cache_layer import Cache
from planner.core.cache_manager import blocks_lie_outermost, uses_hybrid_manager
from planner.core.cache_setting import CacheSetting
from planner.core.capacity import GroupCost
from planner.core.engine import EngineArgs, EngineFacts, ResolvedArgs
from planner.core.hardware import Gpu
from planner.core.kv_cache import KvCachePlan, kv_cache_plan
from planner.core.kv_groups import KvGroups, kv_groups
from planner.core.kv_layers import layers_of
from planner.core.kv_spec import KvSpec, RequestBounds, SpecKind, counted
from planner.core.kv_table import Group
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.sameness import Same

StageKinds = tuple[tuple[tuple[KvSpec, int], ...], ...]
WHOLE_ON_EVERY_RANK = frozenset({SpecKind.MLA, SpecKind.SLIDING_WINDOW_MLA})
FIXED_KINDS = frozenset({SpecKind.MAMBA, SpecKind.CIRCULAR})


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheGroup:
    """One group as a reader sees it; `layers` are those of the whole model, `padding_layers` room that none fills."""

    kind: str
    layers: int
    padding_layers: int
    block_size: int
    page_bytes: int
    blocks_per_request: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheDesign:
    """The groups of a deployment, ready to be planned for any number of bytes.

    `kinds` are the different specs of each stage with how often each comes.
    """

    groups: KvGroups
    kinds: StageKinds
    bounds: RequestBounds
    resolved: ResolvedArgs
    facts: EngineFacts
    kv_heads: int

    def plan(self, available_bytes: Sequence[int]) -> KvCachePlan:
        """Return what vLLM makes of these bytes, one figure a pipeline stage."""
        return kv_cache_plan(
            self.groups,
            available_bytes,
            max_model_len=self.resolved.max_model_len,
            bounds=self.bounds,
            facts=self.facts,
            auto_max_model_len=self.resolved.auto_max_model_len,
            num_gpu_blocks_override=self.resolved.num_gpu_blocks_override,
        )

    def costs(self, max_model_len: int) -> tuple[GroupCost, ...]:
        """Return what a request takes of each group."""
        return tuple(_cost(group, max_model_len, self.bounds) for group in self.groups.groups)

    def shown_groups(self, max_model_len: int) -> tuple[CacheGroup, ...]:
        """Return the groups for display."""
        return tuple(
            CacheGroup(
                kind=group.spec.kind.value,
                layers=len(group.layers),
                padding_layers=group.padding,
                block_size=group.spec.block_size,
                page_bytes=group.spec.page_bytes,
                blocks_per_request=group.blocks_per_request(max_model_len, self.bounds),
            )
            for group in self.groups.groups
        )

    def bytes_per_token(self, stage: int) -> int:
        """Return what one more token costs a rank of a stage: the layers that keep every token."""
        return round(sum(count * token_bytes(spec) for spec, count in self.kinds[stage]))

    def replica_bytes_per_token(self) -> int:
        """Return what one more token costs a replica, its copies on several ranks counted once."""
        return round(
            sum(count * token_bytes(spec) * self._shards(spec) for stage in self.kinds for spec, count in stage)
        )

    def replica_bytes_per_request(self, max_model_len: int) -> int:
        """Return what a request of this length holds over a replica, padding and windows included."""
        return sum(
            count * spec.blocks_per_request(max_model_len, self.bounds) * spec.page_bytes * self._shards(spec)
            for stage in self.kinds
            for spec, count in stage
        )

    def _shards(self, spec: KvSpec) -> int:
        """Ranks that hold something of their own: KV heads are repeated where there are fewer than ranks."""
        tp = self.resolved.tensor_parallel_size
        if spec.kind in WHOLE_ON_EVERY_RANK:
            return 1
        return tp if spec.num_kv_heads > 1 or spec.kind is SpecKind.MAMBA else min(tp, max(1, self.kv_heads))


def token_bytes(spec: KvSpec) -> float:
    """Return the bytes that one more token adds to a layer: none where it keeps a window or a state."""
    return spec.page_bytes / spec.block_size if spec.is_full else 0


def cache_design(
    model: Model,
    *,
    args: EngineArgs,
    resolved: ResolvedArgs,
    gpu: Gpu,
    facts: EngineFacts,
    layout: Layout,
    extra_layers: Sequence[Sequence[Cache]] = (),
) -> CacheDesign:
    """Return how the caches of a deployment are grouped; `extra_layers` are a drafter's, on the last stage.

    Raises BadInput where vLLM cannot plan such layers, Unknown where what they keep is not known.
    """
    groups, kinds = _grouped(
        Same(model),
        Same(gpu),
        Same(facts),
        asked=resolved.caches,
        dtype=resolved.dtype,
        tensor_parallel_size=resolved.tensor_parallel_size,
        mamba_cache_mode=resolved.mamba_cache_mode,
        max_model_len=resolved.max_model_len,
        drafted_tokens=resolved.num_speculative_tokens,
        layers_per_stage=layout.layers_per_stage,
        extra_layers=tuple(tuple(caches) for caches in extra_layers),
        hybrid_manager=uses_hybrid_manager(args, model=model, gpu=gpu, facts=facts),
    )
    return CacheDesign(
        groups=groups,
        kinds=kinds,
        bounds=request_bounds(resolved, facts),
        resolved=resolved,
        facts=facts,
        kv_heads=model.num_kv_heads,
    )


@lru_cache(maxsize=512)
def _grouped(
    model: Same[Model],
    gpu: Same[Gpu],
    facts: Same[EngineFacts],
    *,
    layers_per_stage: tuple[int, ...],
    extra_layers: tuple[tuple[Cache, ...], ...],
    hybrid_manager: bool,
    **setting: Any,
) -> tuple[KvGroups, StageKinds]:
    """Whoever sweeps or compares asks for the same groups many times: they do not depend on any bytes."""
    of_layers = CacheSetting(model=model.held, gpu=gpu.held, facts=facts.held, **setting)
    named = layers_of(of_layers, layers_per_stage, extra_layers=extra_layers)
    groups = kv_groups(
        [[spec for _, spec in stage] for stage in named],
        facts=facts.held,
        hybrid_manager=hybrid_manager,
        block_outermost=blocks_lie_outermost(model.held, facts.held),
    )
    return groups, tuple(counted(stage) for stage in groups.cached)


def request_bounds(resolved: ResolvedArgs, facts: EngineFacts) -> RequestBounds:
    """Return what bounds a request's blocks: since 0.26 every batch in flight counts, before the scheduled one."""
    batches = resolved.max_concurrent_batches if facts.windows_count_what_is_in_flight else 1
    return RequestBounds(
        in_flight_tokens=batches * resolved.max_num_batched_tokens,
        encoder_tokens=resolved.max_num_batched_tokens,
        context_parallel=resolved.caches.decode_context_parallel_size * resolved.caches.prefill_context_parallel_size,
        drafted_states_count=resolved.mamba_cache_mode in facts.kv_states_count_drafts,
    )


def _cost(group: Group, max_model_len: int, bounds: RequestBounds) -> GroupCost:
    most = group.blocks_per_request(max_model_len, bounds)
    every_token = group.spec.is_full
    fixed = group.spec.kind in FIXED_KINDS or group.spec.kind is SpecKind.CROSS
    return GroupCost(
        block_size=group.spec.block_size * (bounds.context_parallel if group.spec.dcp_sharded else 1),
        most_blocks=None if every_token else most,
        fixed_blocks=most if fixed else None,
        keeps_prefix=every_token,
    )
