"""The bytes of weights that each rank loads, exactly as vLLM creates them, and what stays of them after loading."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from planner.core.cache_layer import LatentCache
from planner.core.decoder import Layer
from planner.core.engine import Version
from planner.core.layout import Layout
from planner.core.loaded_towers import loaded_towers, ranks_of
from planner.core.model import Model
from planner.core.modules import Module
from planner.core.place import Place, place_of
from planner.core.rope import Rope
from planner.core.sameness import Same
from planner.core.tower_use import EVERY_TOWER, TowerUse
from planner.core.units import ELEMENT_BYTES
from planner.core.weight_bytes import module_tensors
from planner.core.weight_bytes import padded_vocabulary as padded_vocabulary
from planner.core.weight_formula import formula_of
from planner.core.weight_rank import Rank, is_buffer, is_built, part_of, rank_of
from planner.core.weight_rank import layers_of_stage as layers_of_stage
from planner.core.weight_refusals import weight_refusals as weight_refusals

LATENT_COPIES = "copies of the latent's projections"
KERNEL_FORM = "weights as kernels want them"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWeights:
    """What one rank holds: trained parameters as they are built, buffers beside them (RoPE table, scales).

    `after_load_bytes` is what loading adds to both (copies, padding, repacked scales), or takes away if negative.
    `parts` are (name, bytes) and sum to all three; `formula` has the numbers of this rank filled in.
    """

    parameter_bytes: int
    buffer_bytes: int
    after_load_bytes: int
    formula: str
    parts: tuple[tuple[str, int], ...]

    @property
    def loaded_bytes(self) -> int:
        """What stays once the model is loaded."""
        return self.parameter_bytes + self.buffer_bytes + self.after_load_bytes


def rank_weights(
    model: Model,
    *,
    layout: Layout,
    pp_stage: int,
    dtype: str,
    version: Version | None = None,
    towers: TowerUse = EVERY_TOWER,
    capability: tuple[int, int] | None = None,
    expert_rank: int = 0,
) -> RankWeights:
    """Return the weights of one rank of a pipeline stage, all tensor-parallel ranks of which hold the same.

    The vocabulary is padded to 64 and split over TP, KV heads are replicated when TP exceeds them, norms and biases of
    row-parallel layers are whole everywhere; a tied head costs nothing beside the embedding and a copy of it on another
    stage. `version` (None: the newest) and `capability` (None: no kernel that wants another form) decide what kernels
    make of quantised weights and experts, `towers` what a model that sees or hears loads, `expert_rank` how many whole
    experts a rank has under expert parallelism. Source: vLLM `layers.vocab_parallel_embedding`, `layers.linear`,
    `layers.fused_moe`, `layers.quantization`, `model_executor.models` (0.8.5 to 0.32).
    """
    place = place_of(layout, dtype=dtype, capability=capability, version=version, expert_rank=expert_rank)
    return _rank_weights(Same(model), layout, pp_stage, place, towers)


@lru_cache(maxsize=512)
def _rank_weights(model: Same[Model], layout: Layout, pp_stage: int, place: Place, towers: TowerUse) -> RankWeights:
    """Every plan of a model with this layout weighs the same."""
    rank = rank_of(model.held, layout, pp_stage, place)
    sizes = tuple(_merged([*_layer_sizes(rank), *_end_sizes(rank), *_tower_sizes(rank, towers)]))
    buffers = {**_rope_tables(rank), **{size.part: size.created for size in sizes if size.is_buffer}}
    parameters = {size.part: size.created for size in sizes if not size.is_buffer}
    after = {LATENT_COPIES: _latent_copies(rank), KERNEL_FORM: sum(size.kept - size.created for size in sizes)}
    added = {name: size for name, size in after.items() if size}
    return RankWeights(
        parameter_bytes=sum(parameters.values()),
        buffer_bytes=sum(buffers.values()),
        after_load_bytes=sum(added.values()),
        formula=formula_of(rank, {**buffers, **added}),
        parts=(*parameters.items(), *buffers.items(), *added.items()),
    )


def with_part(weights: RankWeights, name: str, size_bytes: int) -> RankWeights:
    """Return the weights with something more that loading adds."""
    return replace(
        weights,
        after_load_bytes=weights.after_load_bytes + size_bytes,
        formula=f"{weights.formula} + {name} {size_bytes:,} B",
        parts=(*weights.parts, (name, size_bytes)),
    )


@dataclass(frozen=True, slots=True)
class _Size:
    part: str
    created: int
    kept: int
    is_buffer: bool


def _layer_sizes(rank: Rank) -> Iterator[_Size]:
    for layer, count in rank.layers:
        for size in module_sizes(Same(layer.modules), rank.place, rank.by_transformers):
            yield _Size(size.part, count * size.created, count * size.kept, size.is_buffer)


def _end_sizes(rank: Rank) -> Iterable[_Size]:
    return (_size(module, rank.place) for module in rank.end_modules() if rank.builds(module))


@lru_cache(maxsize=1024)  # the same few layers are asked for with every layout of a sweep
def module_sizes(modules: Same[tuple[Module, ...]], place: Place, by_transformers: bool) -> tuple[_Size, ...]:
    """Return the size of each part that some modules make up at one place."""
    return tuple(_merged(_size(m, place) for m in modules.held if is_built(m, by_transformers=by_transformers)))


def _size(module: Module, place: Place) -> _Size:
    tensors = module_tensors(module, place)
    return _Size(part_of(module), tensors.created_bytes, tensors.kept_bytes, is_buffer(module))


def _tower_sizes(rank: Rank, use: TowerUse) -> Iterator[_Size]:
    """Towers are held in shares or whole; vLLM builds most of them on every stage."""
    place = rank.place
    for tower in loaded_towers(rank.model.decoder, use, version=place.version):
        if not (rank.is_first or tower.on_every_stage):
            continue
        ranks = ranks_of(tower, use, tensor_parallel_size=place.tensor_parallel_size, version=place.version)
        share = replace(place, tensor_parallel_size=ranks)
        for size in module_sizes(Same(tower.modules), share, rank.by_transformers):
            part = f"{tower.modality} tower's buffers" if size.is_buffer else f"{tower.modality} tower"
            yield _Size(part, size.created, size.kept, size.is_buffer)


def _merged(sizes: Iterable[_Size]) -> Iterable[_Size]:
    """One size a part."""
    totals: dict[tuple[str, bool], _Size] = {}
    for size in sizes:
        key = (size.part, size.is_buffer)
        so_far = totals.get(key)
        if so_far is not None:
            size = _Size(size.part, so_far.created + size.created, so_far.kept + size.kept, size.is_buffer)
        totals[key] = size
    return totals.values()


def _rope_tables(rank: Rank) -> dict[str, int]:
    """Rotary tables, whole on every rank that has a layer for them; the Transformers backend keeps frequencies."""
    ropes, place = _ropes(rank), rank.place
    tables = (rope.frequencies_bytes if rank.by_transformers else _table_bytes(rope, place) for rope in ropes)
    size = sum(tables)
    return {"RoPE table": size} if size else {}


def _table_bytes(rope: Rope, place: Place) -> int:
    return rope.table_bytes(place.dtype, place.version)


def _ropes(rank: Rank) -> Iterable[Rope]:
    """vLLM's own code shares equal tables."""
    if not any(layer.ropes for layer in rank.model.layers):
        ropes = rank.model.decoder.ropes
        return ropes if rank.by_transformers else dict.fromkeys(ropes)
    return dict.fromkeys(rope for layer, _ in rank.layers for rope in layer.ropes)


def _latent_copies(rank: Rank) -> int:
    """MLA keeps the up-projections of keys and values a second time, unquantised, beside `kv_b_proj`.

    Source: vLLM `MLAAttention.process_weights_after_loading` (0.8.5 to 0.32).
    """
    return sum(count * latent_copy_bytes(layer, rank.place) for layer, count in rank.layers)


def latent_copy_bytes(layer: Layer, place: Place) -> int:
    """Return the bytes of those copies in one layer."""
    elements = sum(
        cache.num_heads
        // place.tensor_parallel_size
        * (cache.nope_head_dim + cache.value_head_dim)
        * cache.kv_lora_rank
        for cache in layer.caches
        if isinstance(cache, LatentCache)
    )
    return elements * ELEMENT_BYTES[place.dtype]
