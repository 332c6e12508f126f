"""Mixtures of experts that attend to a window in some layers: Trinity (AFMoE), K-EXAONE, Command A with experts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, plain_ends
from planner.core.architectures.glm_moe import balanced
from planner.core.architectures.mixture import (
    read_mixture,
    routed,
    router,
    shared_experts,
    sparse_layers,
    whole_number,
)
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.layer_types import FULL, SLIDING, full_every, layer_types, require_kinds
from planner.core.modules import Module, column, gated_mlp
from planner.core.rope import read_rope

EVERY_FOURTH = 4
KINDS = frozenset({FULL, SLIDING})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What a layer is made of, by the kind of its attention and by whether it holds experts."""

    attention: tuple[Module, ...]
    dense: tuple[Module, ...]
    sparse: tuple[Module, ...]
    norms: int
    window: int | None
    full_rotates: bool


def build_afmoe(keys: ConfigKeys) -> Decoder:
    """Return an AFMoE: queries are gated, only windowed layers rotate; source: vLLM `models.afmoe`."""
    heads = read_heads(keys)
    mixture = read_mixture(keys, shared="num_shared_experts")
    plan = _Plan(
        attention=(
            *attention(heads, normalises=True),
            column("self_attn.gate_proj", heads.hidden, ("gate_proj", heads.width)),
        ),
        dense=_dense(keys),
        sparse=tuple(balanced(mixture, bias="mlp.expert_bias")),
        norms=4,
        window=keys.required_size("sliding_window"),
        full_rotates=False,
    )
    first = whole_number(keys, "num_dense_layers")
    return replace(_decoder(keys, heads, plan, lambda place: place >= first), experts_on_every_stage=True)


def build_exaone_moe(keys: ConfigKeys) -> Decoder:
    """Return a K-EXAONE; source: vLLM `models.exaone_moe`."""
    heads = read_heads(keys)
    bias = keys.any_flag("attention_bias|bias")
    mixture = read_mixture(keys, shared="num_shared_experts")
    plan = _Plan(
        attention=tuple(attention(heads, qkv_bias=bias, o_bias=bias, normalises=True)),
        dense=_dense(keys, bias=keys.flag("mlp_bias")),
        sparse=tuple(balanced(mixture, bias="mlp.e_score_correction_bias", dtype=None)),
        norms=2,
        window=keys.required_size("sliding_window"),
        full_rotates=True,
    )
    sparse = sparse_layers(keys, keys.required_size("num_hidden_layers"))
    return _decoder(keys, heads, plan, lambda place: sparse[place], ties=True)


def build_cohere2_moe(keys: ConfigKeys) -> Decoder:
    """Return a Command A with experts: one norm a layer, a window of a token more, the head always tied.

    Source: vLLM `models.cohere2_moe`.
    """
    heads = read_heads(keys)
    mixture = read_mixture(keys, width="intermediate_size", shared="num_shared_experts")
    plan = _Plan(
        attention=tuple(attention(heads)),
        dense=gated_mlp("mlp", heads.hidden, _prefix_width(keys)),
        sparse=(router(mixture), *shared_experts(mixture), routed(mixture)),
        norms=1,
        window=keys.required_size("sliding_window") + 1,
        full_rotates=True,
    )
    sparse = sparse_layers(keys, keys.required_size("num_hidden_layers"))
    decoder = _decoder(keys, heads, plan, lambda place: sparse[place], ties=True)
    return replace(decoder, ends=plain_ends(keys, tied=True), tie_word_embeddings=True, both_ends_everywhere=True)


def _prefix_width(keys: ConfigKeys) -> int:
    return keys.size("prefix_dense_intermediate_size") or keys.required_size("intermediate_size")


def _dense(keys: ConfigKeys, *, bias: bool = False) -> tuple[Module, ...]:
    return gated_mlp("mlp", keys.required_size("hidden_size"), keys.required_size("intermediate_size"), bias=bias)


def _decoder(
    keys: ConfigKeys, heads: Heads, plan: _Plan, is_sparse: Callable[[int], bool], *, ties: bool = False
) -> Decoder:
    rope = read_rope(keys, head_dim=heads.size)
    every = keys.size("global_attn_every_n_layers") or keys.size("sliding_window_pattern") or EVERY_FOURTH
    kinds = require_kinds(layer_types(keys, full_every(every)), KINDS)

    def layer(kind: str, *, sparse: bool) -> Layer:
        modules: Iterable[Module] = (
            *plan.attention,
            layer_norms(heads.hidden, plan.norms),
            *(plan.sparse if sparse else plan.dense),
        )
        slides = kind == SLIDING
        cache = heads.cache(window=plan.window if slides else None)
        return layer_of(modules, cache, ropes=(rope,) if slides or plan.full_rotates else ())

    layers = {(kind, sparse): layer(kind, sparse=sparse) for kind in set(kinds) for sparse in (False, True)}
    return assemble(
        keys,
        (layers[kind, is_sparse(place)] for place, kind in enumerate(kinds)),
        width=keys.required_size("intermediate_size"),
        heads=heads,
        ropes=(rope,),
        ties=ties,
    )


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "AfmoeForCausalLM": Architecture(model_type="afmoe", build=build_afmoe, first="0.11.1"),
        "ExaoneMoEForCausalLM": Architecture(model_type="exaone_moe", build=build_exaone_moe, first="0.14"),
        "ExaoneMoeForCausalLM": Architecture(model_type="exaone_moe", build=build_exaone_moe, first="0.14"),
        "Cohere2MoeForCausalLM": Architecture(model_type="cohere2_moe", build=build_cohere2_moe, first="0.21"),
    }
)
