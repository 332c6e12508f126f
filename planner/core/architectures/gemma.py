"""Gemma 2 and 3: windows and full attention in turn, four norms a layer, both ends on every pipeline stage.

Source: vLLM 0.32 `models.gemma2`, `models.gemma3`; transformers 5.19 for the patterns of layers.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType

from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Ends, Layer
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.layer_types import FULL, SLIDING, full_every, layer_types, require_kinds
from planner.core.modules import Module, Table, Tensor, gated_mlp, norm
from planner.core.rope import Rope, read_rope
from planner.core.rope_types import ropes_by_type

KINDS = frozenset({FULL, SLIDING})
LAYER_NORMS = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")


def build(keys: ConfigKeys, *, period: int, normalises: bool) -> Decoder:
    """Return the decoder of Gemma 2 (full attention in every second layer) or 3 (every sixth, with norms of heads)."""
    heads = read_heads(keys)
    width = keys.required_size("intermediate_size")
    kinds = require_kinds(layer_types(keys, full_every(keys.size("sliding_window_pattern") or period)), KINDS)
    ropes = ropes_by_type(keys, dict.fromkeys(kinds, heads.size)) if normalises else {}
    layers = {kind: _layer(keys, heads, width, kind, rope=ropes.get(kind)) for kind in set(kinds)}
    tied = keys.flag("tie_word_embeddings")
    return Decoder(
        hidden_size=heads.hidden,
        intermediate_size=width,
        vocab_size=keys.required_size("vocab_size"),
        num_attention_heads=heads.queries,
        num_kv_heads=heads.kv,
        head_dim=heads.size,
        layers=tuple(layers[kind] for kind in kinds),
        ends=Ends(every=tuple(_ends(keys, heads, has_head=normalises and not tied))),
        ropes=tuple(ropes.values()) or (read_rope(keys, head_dim=heads.size),),
        context_rope=Rope() if normalises else None,
        tie_word_embeddings=tied,
    )


def _layer(keys: ConfigKeys, heads: Heads, width: int, kind: str, *, rope: Rope | None) -> Layer:
    """Layers that rotate by their kind normalise queries and keys too."""
    bias = keys.flag("attention_bias")
    modules = (
        *attention(heads, qkv_bias=bias, o_bias=bias, normalises=rope is not None),
        *gated_mlp("mlp", heads.hidden, width),
        *(norm(name, heads.hidden) for name in LAYER_NORMS),
    )
    cache = heads.cache(window=window_of(keys, kind))
    return Layer(modules=modules, caches=(cache,), ropes=() if rope is None else (rope,))


def window_of(keys: ConfigKeys, kind: str) -> int | None:
    """Return the window of a layer of that kind; bidirectional checkpoints state both sides of theirs as one."""
    window = keys.size("sliding_window") if kind == SLIDING else None
    if window is None or keys.value("use_bidirectional_attention") not in (True, "all"):
        return window
    return window // 2 + 1


def _ends(keys: ConfigKeys, heads: Heads, *, has_head: bool) -> Iterator[Module]:
    vocab_size = keys.required_size("vocab_size")
    yield Table(name="embed_tokens", rows=vocab_size, width=heads.hidden)
    yield norm("final norm", heads.hidden)
    yield Tensor(name="scalars", elements=1, is_buffer=True)
    if has_head:
        yield Table(name="lm_head", rows=vocab_size, width=heads.hidden)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "Gemma2ForCausalLM": Architecture(model_type="gemma2", build=partial(build, period=2, normalises=False)),
        "Gemma3ForCausalLM": Architecture(model_type="gemma3_text", build=partial(build, period=6, normalises=True)),
    }
)
