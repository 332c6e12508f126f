"""Ling (Bailing): grouped attention with a norm over each head, experts beside shared ones."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, plain_ends
from planner.core.architectures.mixture import (
    FLOAT32,
    Mixture,
    read_mixture,
    routed,
    router,
    selection_bias,
    shared_experts,
    whole_number,
)
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder
from planner.core.grouped_attention import Heads, read_heads
from planner.core.modules import Module, gated_mlp, kv_scales, norm, qkv, row
from planner.core.rope import Rope, read_rope

ROUTER_DTYPES = {None: None, "fp32": FLOAT32}


def build_bailing(keys: ConfigKeys) -> Decoder:
    """Return a Ling; source: vLLM `models.bailing_moe`."""
    heads, bias = read_heads(keys), keys.flag("use_bias")
    shared = (*_attention(keys, heads), layer_norms(heads.hidden))
    dense = gated_mlp("mlp", heads.hidden, keys.required_size("intermediate_size"), bias=bias)
    layers = {
        is_sparse: layer_of((*shared, *mlp), heads.cache())
        for is_sparse, mlp in ((False, dense), (True, tuple(_sparse(keys))))
    }
    first = whole_number(keys, "first_k_dense_replace")
    return assemble(
        keys,
        (layers[place >= first] for place in range(keys.required_size("num_hidden_layers"))),
        width=keys.required_size("intermediate_size"),
        heads=heads,
        ends=plain_ends(keys, embedding="word_embeddings"),
        ropes=(_rope(keys, heads),),
    )


def _attention(keys: ConfigKeys, heads: Heads) -> Iterator[Module]:
    bias = keys.flag("use_bias")
    yield qkv(
        "attention.query_key_value",
        hidden=heads.hidden,
        heads=heads.queries,
        kv_heads=heads.kv,
        head_dim=heads.size,
        bias=bias or keys.flag("use_qkv_bias"),
    )
    yield row("attention.dense", heads.width, heads.hidden, bias=bias)
    if keys.flag("use_qk_norm"):
        yield norm("attention.qk_norm", heads.size, vectors=2 if keys.flag("use_rmsnorm") else 4)
    yield kv_scales("attention.attn")


def _sparse(keys: ConfigKeys) -> Iterator[Module]:
    mixture = _mixture(keys)
    yield router(mixture, dtype=_router_dtype(keys))
    if keys.flag("moe_router_enable_expert_bias"):
        yield selection_bias(mixture.count, name="mlp.gate.expert_bias")
    yield from shared_experts(mixture, bias=keys.flag("use_bias"))
    yield routed(mixture)


def _mixture(keys: ConfigKeys) -> Mixture:
    routed_width = keys.required_size("moe_intermediate_size")
    shared_width = keys.size("moe_shared_expert_intermediate_size") or routed_width
    mixture = read_mixture(keys)
    return Mixture(
        hidden_size=mixture.hidden_size,
        count=mixture.count,
        top_k=mixture.top_k,
        width=mixture.width,
        shared_width=whole_number(keys, "num_shared_experts") * shared_width,
    )


def _router_dtype(keys: ConfigKeys) -> str | None:
    return ROUTER_DTYPES.get(keys.text("router_dtype"), "bfloat16")


def _rope(keys: ConfigKeys, heads: Heads) -> Rope:
    return read_rope(keys, head_dim=heads.size, rotary_dim=keys.size("rotary_dim"))


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "BailingMoeForCausalLM": Architecture(model_type="bailing_moe", build=build_bailing, first="0.10"),
        "BailingMoeV2ForCausalLM": Architecture(model_type="bailing_moe_v2", build=build_bailing, first="0.11"),
    }
)
