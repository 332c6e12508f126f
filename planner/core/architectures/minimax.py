"""MiniMax M2 and M3: norms of queries and keys, experts in most layers; M3 attends to blocks that an indexer picks."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of
from planner.core.architectures.mixture import (
    FLOAT32,
    Mixture,
    flags_by_layer,
    read_mixture,
    routed,
    router,
    selection_bias,
    shared_experts,
)
from planner.core.architectures.query_norms import split_norms
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.model_scope import unknown
from planner.core.modules import Linear, Module, Shard, gated_mlp, norm
from planner.core.rope import Rope, read_rope

SPARSE = "block_sparse_moe"


def build_minimax_m2(keys: ConfigKeys) -> Decoder:
    """Return a MiniMax M2; source: vLLM `models.minimax_m2`."""
    heads = read_heads(keys)
    mixture = read_mixture(keys, count="num_local_experts", width="intermediate_size")
    modules = (
        *attention(heads, qkv_bias=keys.flag("attention_bias")),
        *split_norms(heads),
        *_routing(keys, mixture, name="mlp"),
        layer_norms(heads.hidden),
    )
    return assemble(
        keys,
        (layer_of(modules, heads.cache()),) * keys.required_size("num_hidden_layers"),
        width=mixture.width,
        heads=heads,
        ropes=(_rope(keys, heads),),
        ties=False,
    )


def _routing(keys: ConfigKeys, mixture: Mixture, *, name: str) -> Iterator[Module]:
    if keys.flag("use_routing_bias"):
        yield selection_bias(mixture.count, name=f"{name}.e_score_correction_bias")
    yield routed(mixture, name=name)
    yield router(mixture, name=f"{name}.gate", dtype=FLOAT32)


def _rope(keys: ConfigKeys, heads: Heads) -> Rope:
    return read_rope(keys, head_dim=heads.size, rotary_dim=keys.size("rotary_dim"))


def build_minimax_m3(keys: ConfigKeys) -> Decoder:
    """Return a MiniMax M3, whose sparse layers keep an index beside keys and values.

    Source: vLLM `models.minimax_m3`.
    """
    heads = read_heads(keys)
    mixture = read_mixture(keys, count="num_local_experts", width="intermediate_size", shared="n_shared_experts")
    experts = (*_routing(keys, mixture, name=SPARSE), *shared_experts(mixture, name=f"{SPARSE}.shared_experts"))
    mlps = (gated_mlp("mlp", heads.hidden, keys.required_size("dense_intermediate_size")), experts)
    index = _sparse_attention(keys)
    attentions = (_attention(keys, heads), tuple(_indexed(index, _attention(keys, heads))))
    size = index.required_size("sparse_index_dim")
    caches = (heads.cache(), replace(heads.cache(), index_head_dim=size))
    layers = {
        (picks, holds): layer_of((*attentions[picks], layer_norms(heads.hidden), *mlps[holds]), caches[picks])
        for picks in (False, True)
        for holds in (False, True)
    }
    picking = flags_by_layer(index, "sparse_attention_freq", keys.required_size("num_hidden_layers"))
    holding = flags_by_layer(keys, "moe_layer_freq", keys.required_size("num_hidden_layers"))
    return assemble(
        keys,
        (layers[place] for place in zip(picking, holding, strict=True)),
        width=keys.required_size("dense_intermediate_size"),
        heads=heads,
        ropes=(read_rope(keys, head_dim=heads.size),),
        ties=False,
    )


def _sparse_attention(keys: ConfigKeys) -> ConfigKeys:
    stated = keys.mapping("sparse_attention_config")
    if stated is None:
        raise unknown("sparse_attention_config", "a MiniMax M3 without it is not planned.")
    return ConfigKeys(stated, {}, {})


def _attention(keys: ConfigKeys, heads: Heads) -> tuple[Module, ...]:
    if keys.flag("attention_output_gate"):
        raise unknown("attention_output_gate", "a gate on attention is not planned yet for this family.")
    return tuple(attention(heads, normalises=True))


def _indexed(index: ConfigKeys, modules: tuple[Module, ...]) -> Iterator[Module]:
    """The merged projection gives the index's queries too, and one key that every rank computes."""
    count, size = index.required_size("sparse_num_index_heads"), index.required_size("sparse_index_dim")
    queries = Shard(name="index_q_proj", outputs=count * size, units=count)
    key = Shard(name="index_k_proj", outputs=size, units=1)
    for module in modules:
        if isinstance(module, Linear) and module.name.endswith("qkv_proj"):
            yield replace(module, shards=(*module.shards, queries, key))
        else:
            yield module
    yield norm("self_attn.index_q_norm", size)
    yield norm("self_attn.index_k_norm", size)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "MiniMaxM2ForCausalLM": Architecture(model_type="minimax_m2", build=build_minimax_m2, first="0.11.1"),
        "MiniMaxM3SparseForCausalLM": Architecture(model_type="minimax_m3", build=build_minimax_m3, first="0.24"),
        "MiniMaxM3ForCausalLM": Architecture(
            model_type="minimax_m3", build=build_minimax_m3, first="0.24", checked=False
        ),
    }
)
