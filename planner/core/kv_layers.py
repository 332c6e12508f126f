"""What each layer caches on the ranks of each pipeline stage: vLLM's specs, in its order."""

from collections.abc import Iterator, Sequence

from planner.core.attention_choice import LayerBackend
from planner.core.block_size import DEFAULT_BLOCK
from planner.core.cache_content import (
    LATENT_BYTES,
    NVFP4,
    element_dtype,
    head_bytes,
    head_content_bytes,
    latent_dtype,
    packed_by,
    quant_mode,
)
from planner.core.cache_layer import AttentionCache, Cache, CompressedCache, LatentCache, StateCache
from planner.core.cache_setting import CacheSetting
from planner.core.compressed_specs import compressed_specs
from planner.core.engine import EngineFacts, ResolvedArgs
from planner.core.hardware import Gpu
from planner.core.kv_spec import KvSpec, SpecKind
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.page_alignment import BlockPlan, block_plan
from planner.core.prefill_checkpoints import keeps_checkpoints
from planner.core.units import ELEMENT_BYTES

NamedSpec = tuple[str, KvSpec]
INDEX_GROUP = 128
INDEX_SCALE_BYTES = 4
KINDS = {
    "full": SpecKind.FULL,
    "sliding_window": SpecKind.SLIDING_WINDOW,
    "chunked_local": SpecKind.CHUNKED_LOCAL,
    "cross": SpecKind.CROSS,
}


def cache_setting(model: Model, resolved: ResolvedArgs, gpu: Gpu, facts: EngineFacts) -> CacheSetting:
    """Return what the caches of a resolved command depend on."""
    return CacheSetting(
        model=model,
        gpu=gpu,
        facts=facts,
        asked=resolved.caches,
        dtype=resolved.dtype,
        tensor_parallel_size=resolved.tensor_parallel_size,
        mamba_cache_mode=resolved.mamba_cache_mode,
        max_model_len=resolved.max_model_len,
        drafted_tokens=resolved.num_speculative_tokens,
    )


def kv_layers(
    model: Model,
    resolved: ResolvedArgs,
    gpu: Gpu,
    facts: EngineFacts,
    layout: Layout,
    *,
    extra_layers: Sequence[Sequence[Cache]] = (),
) -> tuple[tuple[NamedSpec, ...], ...]:
    """Return the specs of one rank of each pipeline stage, in vLLM's order; layers that keep nothing have none.

    `extra_layers` are those of a drafter, on the last stage. Raises BadInput where no attention backend serves the
    model, Unknown where a release's rule needs what isn't known. Source: vLLM `get_kv_cache_spec` of the model runner,
    `Attention`, `MLAAttention`, `MambaBase` (0.8.5 to 0.33).
    """
    setting = cache_setting(model, resolved, gpu, facts)
    return layers_of(setting, layout.layers_per_stage, extra_layers=extra_layers)


def layers_of(
    setting: CacheSetting, layers_per_stage: Sequence[int], *, extra_layers: Sequence[Sequence[Cache]] = ()
) -> tuple[tuple[NamedSpec, ...], ...]:
    """Return what `kv_layers` does, from what the caches depend on."""
    model, blocks = setting.model, block_plan(setting)
    stages, first = [], 0
    for count in layers_per_stage:
        indices = range(first, first + count)
        alone = _states_alone([cache for index in indices for cache in model.layers[index].caches], setting)
        maker = _SpecMaker(setting, alone or blocks)
        stages.append([spec for index in indices for spec in maker.specs(index, model.layers[index].caches)])
        first += count
    for offset, caches in enumerate(extra_layers):
        stages[-1].extend(maker.specs(model.num_layers + offset, caches))
    return tuple(tuple(_in_order(stage, setting.facts)) for stage in stages)


def _states_alone(caches: list[Cache], setting: CacheSetting) -> BlockPlan | None:
    """Since 0.20 each worker aligns its own layers: on a stage without attention states keep a page of their own."""
    if not caches or setting.facts.hybrid_block_step != "backend" or not setting.model.traits.hybrid:
        return None
    if not all(isinstance(cache, StateCache) for cache in caches):
        return None
    block = setting.asked.block_size or DEFAULT_BLOCK
    whole = setting.mamba_cache_mode == "none"
    return BlockPlan(
        attention=block, state=setting.asked.mamba_block_size or (setting.max_model_len if whole else block)
    )


def _in_order(specs: list[NamedSpec], facts: EngineFacts) -> list[NamedSpec]:
    """Until 0.11.0 the runner listed attention first, then states, then the caches of indexers."""
    if not facts.states_come_last:
        return specs
    late = {SpecKind.MAMBA: 1}
    return sorted(specs, key=lambda named: 2 if named[1].cache_role == "indexer" else late.get(named[1].kind, 0))


class _SpecMaker:
    """Makes the specs of one layer after the other; equal layers get equal specs, made once."""

    def __init__(self, setting: CacheSetting, blocks: BlockPlan) -> None:
        self.setting, self.blocks = setting, blocks
        self.made: dict[tuple[int, str], tuple[tuple[str, KvSpec], ...]] = {}

    def specs(self, index: int, caches: Sequence[Cache]) -> Iterator[NamedSpec]:
        """Yield the named specs of one layer."""
        prefix = f"{self.setting.model.decoder.layer_prefix}.{index}"
        for cache in caches:
            key = (id(cache), self.setting.layer_dtype(index, cache))
            if key not in self.made:
                self.made[key] = tuple(self._make(cache, key[1]))
            for part, spec in self.made[key]:
                yield f"{prefix}.{part}", spec

    def _make(self, cache: Cache, kv_cache_dtype: str) -> Iterator[tuple[str, KvSpec]]:
        match cache:
            case AttentionCache() if cache.shared or cache.kind == "encoder_only":
                return
            case AttentionCache():
                yield from self._attention(cache, kv_cache_dtype)
            case LatentCache():
                yield from self._latent(cache, kv_cache_dtype)
            case StateCache():
                yield "state", self._state(cache)
            case CompressedCache():
                yield from compressed_specs(cache, kv_cache_dtype=kv_cache_dtype, block_size=self.blocks.attention)

    def _attention(self, cache: AttentionCache, kv_cache_dtype: str) -> Iterator[tuple[str, KvSpec]]:
        served = self.setting.served(cache, kv_cache_dtype)
        need = served.need
        packed = packed_by(served.backend.name, kv_cache_dtype)
        window = cache.kind == "sliding_window"
        element = element_dtype(kv_cache_dtype, self.setting.dtype)
        content = head_content_bytes(kv_cache_dtype, need.head_dim, need.value_head_dim) if packed else None
        kind = KINDS[cache.kind]
        if kind is SpecKind.CHUNKED_LOCAL and not self.setting.facts.chunks_have_their_own_kind:
            kind = SpecKind.FULL
        slots = 2 * need.kv_heads if packed and kv_cache_dtype in NVFP4 else None
        if cache.index_head_dim is not None:
            yield "indexer", self._head_indexer(cache.index_head_dim)
        yield (
            cache.kind if cache.kind == "cross" else "attn",
            KvSpec(
                kind=kind,
                block_size=self._window_block(served, kv_cache_dtype) if window else self.blocks.attention,
                num_kv_heads=need.kv_heads,
                head_size=need.head_dim,
                head_size_v=need.value_head_dim,
                dtype=element,
                element_bytes=ELEMENT_BYTES[element],
                kv_quant_mode=quant_mode(kv_cache_dtype),
                num_head_slots=slots,
                state_content_bytes=content // 2 if slots is not None and content is not None else content,
                page_size_padded=self.blocks.skipped_page_bytes if window else None,
                dcp_sharded=True,
                sliding_window=cache.span_in(self.setting.facts.version) if window else None,
                attention_chunk_size=cache.span if cache.kind == "chunked_local" else None,
            ),
        )

    def _window_block(self, served: LayerBackend, kv_cache_dtype: str) -> int:
        """Since 0.25 a window has a block of its own: the least its kernel takes, or the most that fits a page."""
        setting = self.setting
        if setting.facts.window_block == "primary":
            return self.blocks.attention
        need = served.need
        packed = packed_by(served.backend.name, kv_cache_dtype)
        token_bytes = need.kv_heads * head_bytes(
            need.head_dim, need.value_head_dim, kv_cache_dtype, setting.dtype, packed=packed
        )
        shared = self.blocks.skipped_page_bytes
        if setting.facts.window_block == "smallest" and shared is None:
            return served.smallest_block
        page = shared or token_bytes * self.blocks.attention
        return served.largest_block_within(page, token_bytes)

    def _latent(self, cache: LatentCache, kv_cache_dtype: str) -> Iterator[tuple[str, KvSpec]]:
        served = self.setting.served(cache, kv_cache_dtype)
        stored = latent_dtype(served.backend.name, kv_cache_dtype)
        element = element_dtype(stored, self.setting.dtype)
        if cache.index_head_dim is not None and not cache.shares_index:
            yield "indexer", self._latent_indexer(cache.index_head_dim)
        yield (
            "attn",
            KvSpec(
                kind=SpecKind.MLA,
                block_size=self.blocks.attention,
                head_size=served.need.head_dim,
                dtype=element,
                element_bytes=ELEMENT_BYTES[element],
                kv_quant_mode=quant_mode(stored),
                state_content_bytes=LATENT_BYTES.get(stored),
                dcp_sharded=True,
                cache_role="sparse" if served.need.sparse else "",
            ),
        )

    def _latent_indexer(self, head_dim: int) -> KvSpec:
        """Keys of the indexer in 8 bits, with a scale for each 128 (vLLM `DeepseekV32IndexerCache`)."""
        return KvSpec(
            kind=SpecKind.MLA,
            block_size=self.blocks.attention,
            head_size=head_dim + head_dim // INDEX_GROUP * INDEX_SCALE_BYTES,
            dtype="uint8",
            element_bytes=1,
            dcp_sharded=True,
            cache_role="indexer",
        )

    def _head_indexer(self, head_dim: int) -> KvSpec:
        """Keys of the indexer in the model's dtype (vLLM `MiniMaxM3IndexerCache`)."""
        return KvSpec(
            kind=SpecKind.MLA,
            block_size=self.blocks.attention,
            head_size=head_dim,
            dtype=self.setting.dtype,
            element_bytes=ELEMENT_BYTES[self.setting.dtype],
            dcp_sharded=True,
            cache_role="indexer",
        )

    def _state(self, cache: StateCache) -> KvSpec:
        setting = self.setting
        state = setting.state(cache)
        return KvSpec(
            kind=SpecKind.MAMBA,
            block_size=self.blocks.state,
            state_bytes=state.content_bytes,
            page_size_padded=self.blocks.state_page_bytes,
            mamba_type=cache.kind,
            mamba_cache_mode=setting.mamba_cache_mode,
            num_speculative_blocks=setting.drafted_tokens,
            num_prefill_checkpoint_blocks=int(keeps_checkpoints(setting, cache)),
        )
