"""Dense decoders whose layers differ in their window at most: what a row of `families` says becomes modules."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from planner.core.config_keys import ConfigKeys, finite
from planner.core.decoder import Architecture, Decoder, Ends, Layer
from planner.core.engine import Version
from planner.core.families import FAMILIES
from planner.core.family import Family, Positions, QkNorm
from planner.core.grouped_attention import Heads
from planner.core.model_scope import require_planned
from planner.core.model_shape import Shape, read_shape
from planner.core.modules import Linear, Module, Split, Table, Tensor, column, kv_scales, norm, qkv, row
from planner.core.rope import NO_KEY_POSITIONS, Rope, read_rope
from planner.core.windows import layer_windows

SCALAR_DTYPE = "bfloat16"
SINKS = "self_attn.sinks"


def build(keys: ConfigKeys, *, family: Family) -> Decoder:
    """Return the decoder of one of the dense families; raises Unknown for what makes it more than that."""
    require_planned(keys, family)
    shape = read_shape(keys, family)
    tied = keys.flag("tie_word_embeddings")
    kinds = list(zip(layer_windows(keys, family), _layer_ropes(keys, family, shape), strict=True))
    modules = _modules(keys, shape, family)
    layers = {kind: _layer(shape, family, modules, *kind) for kind in dict.fromkeys(kinds)}
    return Decoder(
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        vocab_size=shape.vocab_size,
        num_attention_heads=shape.num_attention_heads,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        layers=tuple(layers[kind] for kind in kinds),
        ends=_ends(keys, shape, family, tied=tied),
        ropes=_ropes(keys, family, shape.head_dim),
        tie_word_embeddings=tied,
        both_ends_everywhere=family.both_ends_everywhere,
    )


def _layer(
    shape: Shape, family: Family, modules: tuple[Module, ...], window: int | None, ropes: tuple[Rope, ...]
) -> Layer:
    heads = Heads(
        hidden=shape.hidden_size, queries=shape.num_attention_heads, kv=shape.num_kv_heads, size=shape.head_dim
    )
    cache = heads.cache(window=window, has_sinks=any(module.name == SINKS for module in modules))
    if window is not None and family.window_grew:
        cache = replace(cache, span_grew=Version.parse(family.window_grew))
    return Layer(modules=modules, caches=(cache,), ropes=ropes)


def _modules(keys: ConfigKeys, shape: Shape, family: Family) -> tuple[Module, ...]:
    return (
        *_attention(shape),
        *_sinks(keys, shape, family),
        *_mlp(shape, family),
        *_norms(shape),
        *_loose(family),
    )


def _sinks(keys: ConfigKeys, shape: Shape, family: Family) -> Iterator[Tensor]:
    """Granite with windows has a learned sink a head, unless its config says otherwise."""
    stated = keys.value("attention_sinks")
    if family.may_have_sinks and (keys.has("layer_types") if stated is None else stated):
        yield Tensor(name=SINKS, elements=shape.num_attention_heads, sharded=True)


def _layer_ropes(keys: ConfigKeys, family: Family, shape: Shape) -> Iterator[tuple[Rope, ...]]:
    """What each layer rotates by where the config states a base for every one of them: 0 is not at all."""
    layers = keys.required_size("num_hidden_layers")
    bases = keys.value("layer_rope_theta") if family.may_have_sinks else None
    if not isinstance(bases, list | tuple):
        return iter([()] * layers)
    rope = read_rope(keys, head_dim=shape.head_dim)
    numbers = [finite("layer_rope_theta", base) for base in bases[:layers]]
    return iter([(replace(rope, base=base),) if base else () for base in numbers])


def _attention(shape: Shape) -> Iterator[Module]:
    yield qkv(
        "self_attn.qkv_proj",
        hidden=shape.hidden_size,
        heads=shape.num_attention_heads,
        kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        bias=shape.qkv_bias,
    )
    query_width = shape.num_attention_heads * shape.head_dim
    yield row("self_attn.o_proj", query_width, shape.hidden_size, bias=shape.o_bias)
    yield from _qk_norms(shape, query_width)
    yield kv_scales("self_attn.attn")


def _qk_norms(shape: Shape, query_width: int) -> Iterator[Tensor]:
    match shape.qk_norm:
        case QkNorm.HEAD:
            yield norm("self_attn.qk_norm", shape.head_dim, vectors=2)
        case QkNorm.HEAD_AND_BIAS:
            yield norm("self_attn.qk_norm", shape.head_dim, vectors=4)
        case QkNorm.EACH_HEAD:
            yield Tensor(name="self_attn.q_norm", elements=query_width, sharded=True)
            kv_heads = shape.num_kv_heads
            yield Tensor(name="self_attn.k_norm", elements=kv_heads * shape.head_dim, units=kv_heads)
        case QkNorm.ALL_HEADS:
            yield norm("self_attn.qk_norm", query_width + shape.num_kv_heads * shape.head_dim)


def _mlp(shape: Shape, family: Family) -> Iterator[Linear]:
    hidden, width, bias = shape.hidden_size, shape.intermediate_size, shape.mlp_bias
    upward = (("gate_proj", width), ("up_proj", width)) if family.gated_mlp else (("up_proj", width),)
    up = column("mlp.gate_up_proj" if family.gated_mlp else "mlp.up_proj", hidden, *upward, bias=bias)
    down = row("mlp.down_proj", width, hidden, bias=bias)
    if not family.mlp_whole_in_transformers:
        yield from (up, down)
        return
    for linear in (up, down):
        yield _served(linear, "vllm", linear.split)
        yield _served(linear, "transformers", Split.REPLICATED)


def _served(linear: Linear, by: str, split: Split) -> Linear:
    return Linear(
        name=linear.name, inputs=linear.inputs, shards=linear.shards, split=split, bias=linear.bias, served=by
    )


def _norms(shape: Shape) -> Iterator[Tensor]:
    if vectors := shape.norms_per_layer * shape.norm_vectors:
        yield norm("norms", shape.hidden_size, vectors=vectors)


def _loose(family: Family) -> Iterator[Tensor]:
    """Trained scalars of an activation (xIELU) and their buffers are bfloat16 whatever the model is."""
    if family.layer_scalars:
        yield Tensor(name="mlp.act_fn", elements=family.layer_scalars, dtype=SCALAR_DTYPE)
    if family.layer_scalar_buffers:
        buffers = family.layer_scalar_buffers
        yield Tensor(name="mlp.act_fn.scalars", elements=buffers, dtype=SCALAR_DTYPE, is_buffer=True)


def _ends(keys: ConfigKeys, shape: Shape, family: Family, *, tied: bool) -> Ends:
    return Ends(
        first=tuple(_embeddings(shape, family)),
        last=tuple(_outputs(shape, family, tied=tied)),
        every=tuple(_everywhere(keys, family)),
    )


def _embeddings(shape: Shape, family: Family) -> Iterator[Module]:
    yield Table(name="embed_tokens", rows=shape.vocab_size, width=shape.embedding_size)
    if shape.learned_positions:
        yield Tensor(name="positions", elements=shape.learned_positions * shape.hidden_size)
    if shape.embedding_size != shape.hidden_size:
        yield Tensor(name="embedding projections", elements=2 * shape.embedding_size * shape.hidden_size)
    if family.embedding_norm:
        yield norm("embedding norm", shape.hidden_size, vectors=2)


def _outputs(shape: Shape, family: Family, *, tied: bool) -> Iterator[Module]:
    if shape.final_norm and shape.norm_vectors:
        yield norm("final norm", shape.hidden_size, vectors=shape.norm_vectors)
    yield Table(name="lm_head", rows=shape.vocab_size, width=shape.embedding_size, tied=tied)
    if family.head_bias and not tied:
        served = "" if family.head_bias_in_transformers else "vllm"
        yield Table(name="lm_head.bias", rows=shape.vocab_size, width=1, served=served)


def _everywhere(keys: ConfigKeys, family: Family) -> Iterator[Tensor]:
    if family.model_scalar_buffers:
        yield Tensor(name="scalars", elements=family.model_scalar_buffers, is_buffer=True)
    if family.mask_buffer:
        positions = keys.size("max_position_embeddings") or 0
        elements = positions**2
        yield Tensor(name="causal mask", elements=elements, dtype="bool", is_buffer=True, served="transformers")


def _ropes(keys: ConfigKeys, family: Family, head_dim: int) -> tuple[Rope, ...]:
    if not _rotates(keys, family):
        return ()
    positions = None
    if family.model_type in ("cohere", "cohere2"):
        positions = keys.size("model_max_length") or keys.size("max_position_embeddings") or NO_KEY_POSITIONS
    rotary_dim = _rotary_dim(keys, family, head_dim)
    rope = read_rope(keys, head_dim=head_dim, rotary_dim=rotary_dim, positions=positions)
    if not family.scales_full_attention_only:
        return (rope,)
    return rope, read_rope(keys, head_dim=head_dim, rotary_dim=rotary_dim, scaling={})


def _rotates(keys: ConfigKeys, family: Family) -> bool:
    if family.positions is not Positions.ROPE or (family.alibi_if and keys.flag(family.alibi_if)):
        return False
    if family.rotates_at_width is not None and keys.size("hidden_size") != family.rotates_at_width:
        return False
    return (keys.text("position_embedding_type") or "rope") == "rope"


def _rotary_dim(keys: ConfigKeys, family: Family, head_dim: int) -> int | None:
    if family.rotary_factor is not None:
        return int(head_dim * family.rotary_factor)
    return keys.size("rotary_dim") if family.model_type in ("gptj", "phi") else None


def _architecture(family: Family) -> Architecture:
    reader: Callable[[ConfigKeys], Decoder] = partial(build, family=family)
    return Architecture(
        model_type=family.model_type,
        build=reader,
        names=family.names,
        first=family.first,
        last=family.last,
        transformers_since=family.transformers_since,
        checked=family.checked,
    )


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {name: _architecture(family) for name, family in FAMILIES.items()}
)
