"""The bytes of weights that each rank loads, exactly as vLLM creates them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.core.decoder import Layer
from planner.core.engine import Version
from planner.core.layout import Layout
from planner.core.loaded_towers import TowerUse, tower_modules
from planner.core.model import Model
from planner.core.modules import Experts, Linear, Module, Split, Table, Tensor, expert_elements
from planner.core.terms import Reason
from planner.core.units import ELEMENT_BYTES, round_up

VOCABULARY_MULTIPLE = 64
EVERY_TOWER = TowerUse()
PARTS = {
    "self_attn": "attention",
    "attn": "attention",
    "mlp": "MLP",
    "embed_tokens": "embedding",
    "lm_head": "head",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWeights:
    """What one rank holds after loading: trained parameters, and buffers (RoPE table, scales) beside them.

    `parts` are (name, bytes) and sum to both; `formula` has the numbers of this rank filled in.
    """

    parameter_bytes: int
    buffer_bytes: int
    formula: str
    parts: tuple[tuple[str, int], ...]


def padded_vocabulary(vocab_size: int) -> int:
    """Return the rows vLLM gives an embedding (`VocabParallelEmbedding`: a multiple of 64)."""
    return round_up(vocab_size, VOCABULARY_MULTIPLE)


def rank_weights(
    model: Model,
    *,
    layout: Layout,
    pp_stage: int,
    dtype: str,
    version: Version | None = None,
    towers: TowerUse = EVERY_TOWER,
) -> RankWeights:
    """Return the weights of one rank of a pipeline stage, all tensor-parallel ranks of which hold the same.

    The vocabulary is padded to 64 and split over TP, KV heads are replicated when TP exceeds them, norms and biases of
    row-parallel layers are whole everywhere; a tied head costs nothing beside the embedding and a copy of it on another
    stage. `version` matters for the few families that changed hands (None: the newest), `towers` for models that see or
    hear. Source: vLLM
    `layers.vocab_parallel_embedding`, `layers.linear`, `layers.fused_moe`, `model_executor.models` (0.8.5 to 0.32).
    """
    rank = _rank(model, layout, pp_stage, dtype, version)
    sizes = [*_layer_sizes(rank), *_end_sizes(rank), *_tower_sizes(rank, towers, version)]
    parameters = _by_name(size for size in sizes if not size.is_buffer)
    buffers = {**_rope_tables(rank), **_by_name(size for size in sizes if size.is_buffer)}
    return RankWeights(
        parameter_bytes=sum(parameters.values()),
        buffer_bytes=sum(buffers.values()),
        formula=_formula(rank, buffers),
        parts=(*parameters.items(), *buffers.items()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rank:
    model: Model
    tp: int
    layers: tuple[tuple[Layer, int], ...]
    is_first: bool
    is_last: bool
    dtype: str
    by_transformers: bool

    def builds(self, module: Module) -> bool:
        return module.served in ("", "transformers" if self.by_transformers else "vllm")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    part: str
    bytes: int
    is_buffer: bool = False


def _rank(model: Model, layout: Layout, pp_stage: int, dtype: str, version: Version | None) -> _Rank:
    by_transformers = model.is_served_by_transformers(version)
    everywhere = model.decoder.both_ends_everywhere and not by_transformers
    return _Rank(
        model=model,
        tp=layout.tensor_parallel_size,
        layers=layers_of_stage(model, layout, pp_stage),
        is_first=everywhere or layout.is_first(pp_stage),
        is_last=everywhere or layout.is_last(pp_stage),
        dtype=dtype,
        by_transformers=by_transformers,
    )


def layers_of_stage(model: Model, layout: Layout, pp_stage: int) -> tuple[tuple[Layer, int], ...]:
    """Return each different layer of a stage with how often it comes, in order of appearance."""
    start = sum(layout.layers_per_stage[:pp_stage])
    held = model.layers[start : start + layout.layers_per_stage[pp_stage]]
    counts = Counter(id(layer) for layer in held)
    different = {id(layer): layer for layer in held}
    return tuple((layer, counts[identity]) for identity, layer in different.items())


def _layer_sizes(rank: _Rank) -> Iterator[_Size]:
    for layer, count in rank.layers:
        for module in filter(rank.builds, layer.modules):
            size = module_bytes(module, tp=rank.tp, dtype=rank.dtype)
            yield _Size(part=part_of(module), bytes=count * size, is_buffer=is_buffer(module))


def _end_sizes(rank: _Rank) -> Iterator[_Size]:
    for module in filter(rank.builds, _end_modules(rank)):
        size = module_bytes(module, tp=rank.tp, dtype=rank.dtype)
        yield _Size(part=part_of(module), bytes=size, is_buffer=is_buffer(module))


def _tower_sizes(rank: _Rank, use: TowerUse, version: Version | None) -> Iterator[_Size]:
    """Towers are held in shares or whole; vLLM builds most of them on every stage."""
    held = tower_modules(rank.model.decoder, use, tensor_parallel_size=rank.tp, is_first=rank.is_first, version=version)
    for tower, ranks, module in held:
        size, part = module_bytes(module, tp=ranks, dtype=rank.dtype), f"{tower.modality} tower"
        buffer = is_buffer(module)
        yield _Size(part=f"{part}'s buffers" if buffer else part, bytes=size, is_buffer=buffer)


def _end_modules(rank: _Rank) -> Iterator[Module]:
    """A tied head is the embedding where both are; alone on the last stage it brings a copy of it."""
    ends = rank.model.decoder.ends
    yield from ends.every
    if rank.is_first:
        yield from ends.first
    elif rank.is_last and rank.model.tie_word_embeddings:
        yield from (module for module in ends.first if rank.by_transformers or isinstance(module, Table))
    if rank.is_last:
        yield from (module for module in ends.last if not (isinstance(module, Table) and module.tied))


def is_buffer(module: Module) -> bool:
    """Whether a module is not trained."""
    return isinstance(module, Tensor) and module.is_buffer


def part_of(module: Module) -> str:
    """Return the part of a model that a module belongs to, in words."""
    if isinstance(module, Experts):
        return "experts"
    name = module.name
    if "norm" in name and isinstance(module, Tensor) and not module.is_buffer:
        return name if name.startswith(("final", "embedding")) else "norms"
    if name.endswith(".scales") and is_buffer(module):
        return "KV scales"
    return PARTS.get(name.partition(".")[0], name)


def module_bytes(module: Module, *, tp: int, dtype: str) -> int:
    """Return the bytes of one module on one rank of `tp`."""
    match module:
        case Linear():
            outputs = sum(module.outputs_on_rank(tp))
            elements = outputs * (module.inputs_on_rank(tp) + int(module.bias))
            return elements * ELEMENT_BYTES[module.dtype or dtype]
        case Experts():
            return module.count * expert_elements(module, module.intermediate_size // tp) * ELEMENT_BYTES[dtype]
        case Table():
            return padded_vocabulary(module.rows) // tp * (module.width + int(module.bias)) * ELEMENT_BYTES[dtype]
        case Tensor():
            return module.on_rank(tp) * ELEMENT_BYTES[module.dtype or dtype]


def _by_name(sizes: Iterable[_Size]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for size in sizes:
        totals[size.part] = totals.get(size.part, 0) + size.bytes
    return totals


def _rope_tables(rank: _Rank) -> dict[str, int]:
    """Rotary tables, whole on every rank; the Transformers backend keeps frequencies instead."""
    ropes = rank.model.decoder.ropes
    size = sum(rope.frequencies_bytes if rank.by_transformers else rope.table_bytes(rank.dtype) for rope in ropes)
    return {"RoPE table": size} if size else {}


def _formula(rank: _Rank, buffers: Mapping[str, int]) -> str:
    """The sum in words: each kind of layer with its parts, what stands at the ends, the buffers."""
    kinds = [f"{count} layers x ({_parts_text(rank, layer.modules)})" for layer, count in rank.layers]
    ends = _parts_text(rank, tuple(_end_modules(rank)))
    body = " + ".join([*kinds, *([ends] if ends else [])])
    return " + ".join([f"({body}) x {ELEMENT_BYTES[rank.dtype]} B", *(f"{n} {s:,} B" for n, s in buffers.items())])


def _parts_text(rank: _Rank, modules: Sequence[Module]) -> str:
    built = [module for module in modules if rank.builds(module) and not is_buffer(module)]
    names = dict.fromkeys(part_of(module) for module in built)
    return " + ".join(f"{name} {_part_text([m for m in built if part_of(m) == name], rank.tp)}" for name in names)


def _part_text(modules: Sequence[Module], tp: int) -> str:
    """What TP divides in one sum, then what comes by head or by expert, then what every rank holds whole."""
    shares = [_shares(module) for module in modules]
    divided, whole = sum(share.divided for share in shares), sum(share.whole for share in shares)
    texts = [_over(f"{divided:,}", tp)] if divided else []
    texts += [
        _over(f"{m.count} experts x {expert_elements(m, m.intermediate_size):,}", tp) for m in experts_of(modules)
    ]
    texts += [_over(f"{padded_vocabulary(m.rows):,} x {m.width:,}", tp) for m in modules if isinstance(m, Table)]
    for units, elements in _by_units(shares).items():
        held = max(1, units // tp)
        texts.append(f"{held} KV head{'s' if held > 1 else ''} x {elements:,}")
    return " + ".join([*texts, *([f"{whole:,}"] if whole else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shares:
    divided: int = 0
    whole: int = 0
    units: tuple[tuple[int, int], ...] = ()


def _shares(module: Module) -> _Shares:
    match module:
        case Linear():
            return _linear_shares(module)
        case Tensor():
            if module.units is not None:
                return _Shares(units=((module.units, module.elements // module.units),))
            return _Shares(divided=module.elements) if module.sharded else _Shares(whole=module.elements)
        case _:
            return _Shares()


def _linear_shares(linear: Linear) -> _Shares:
    outputs = sum(shard.outputs for shard in linear.shards)
    if linear.split is Split.ROW:
        return _Shares(divided=linear.inputs * outputs, whole=outputs * int(linear.bias))
    inputs = linear.inputs + int(linear.bias)
    if linear.split is Split.REPLICATED:
        return _Shares(whole=inputs * outputs)
    return _Shares(
        divided=inputs * sum(shard.outputs for shard in linear.shards if shard.units is None),
        units=tuple((s.units, inputs * (s.outputs // s.units)) for s in linear.shards if s.units is not None),
    )


def _by_units(shares: Iterable[_Shares]) -> dict[int, int]:
    totals: dict[int, int] = {}
    for share in shares:
        for units, elements in share.units:
            totals[units] = totals.get(units, 0) + elements
    return totals


def experts_of(modules: Iterable[Module]) -> Iterator[Experts]:
    """Return the routed experts among some modules."""
    return (module for module in modules if isinstance(module, Experts))


def _over(text: str, tensor_parallel_size: int) -> str:
    return f"{text}/{tensor_parallel_size}" if tensor_parallel_size > 1 else text


def weight_refusals(model: Model, layout: Layout) -> tuple[Reason, ...]:
    """Return why vLLM would not build this layout, in the order of its boot.

    Source: vLLM `ModelConfig.verify_with_parallel_config` (heads, pipeline), `distributed.utils.divide` and the
    assertions of the model classes (KV heads, dimensions).
    """
    checks = (_heads_refusal, _pipeline_refusal, _kv_heads_refusal, _dimension_refusal)
    return tuple(reason for check in checks if (reason := check(model, layout)) is not None)


def _heads_refusal(model: Model, layout: Layout) -> Reason | None:
    heads, tp = model.num_attention_heads, layout.tensor_parallel_size
    if heads % tp == 0:
        return None
    return Reason(
        rule="heads_tp",
        field="tensor_parallel_size",
        message=f"{heads} attention heads are not divisible by tensor_parallel_size {tp}.",
        remedy=f"choose a tensor-parallel size that divides {heads}, and pipeline parallelism for the rest",
    )


def _pipeline_refusal(model: Model, layout: Layout) -> Reason | None:
    if layout.pipeline_parallel_size == 1 or model.supports_pp:
        return None
    return Reason(
        rule="pp_unsupported",
        field="pipeline_parallel_size",
        message=f"vLLM has no pipeline parallelism for {model.architecture}.",
        remedy="use --pipeline-parallel-size 1",
    )


def _kv_heads_refusal(model: Model, layout: Layout) -> Reason | None:
    kv_heads, tp = model.num_kv_heads, layout.tensor_parallel_size
    if kv_heads % tp == 0 or tp % kv_heads == 0:
        return None
    return Reason(
        rule="kvheads_tp",
        field="tensor_parallel_size",
        message=f"{kv_heads} KV heads can neither be split over nor repeated on {tp} ranks evenly.",
        remedy=f"choose a tensor-parallel size that divides {kv_heads} or is a multiple of it",
    )


def _dimension_refusal(model: Model, layout: Layout) -> Reason | None:
    tp = layout.tensor_parallel_size
    sizes = (("intermediate_size", model.intermediate_size), ("padded vocabulary", padded_vocabulary(model.vocab_size)))
    name, size = next(((name, size) for name, size in sizes if size % tp), ("", 0))
    if not name:
        return None
    return Reason(
        rule="dim_tp",
        field="tensor_parallel_size",
        message=f"{name} {size:,} is not divisible by tensor_parallel_size {tp}.",
        remedy="choose a smaller tensor-parallel size, and pipeline parallelism for the rest",
    )
