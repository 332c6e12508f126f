"""Kimi Linear and Kimi K3: Kimi delta attention in most layers, latent attention without positions in the others."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, plain_ends
from planner.core.architectures.mixture import (
    read_mixture,
    routed,
    router,
    selection_bias,
    shared_experts,
    sparse_layers,
    whole_number,
)
from planner.core.cache_layer import StateCache
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Ends
from planner.core.grouped_attention import Heads
from planner.core.latent_attention import Latent, expansion, read_latent
from planner.core.layer_types import LINEAR, texts
from planner.core.model_scope import unknown
from planner.core.modules import Linear, Module, Shard, Split, Tensor, column, gated_mlp, norm, replicated, row

FLOAT32 = "float32"
SPARSE = "block_sparse_moe"
ALIGNED_OUTPUTS = 16
LEAST_EXPERT_WIDTH = 256
FUSED_DECODE_HEADS = frozenset({12, 24, 48, 96})
FUSED_DECODE_SIZES = (128, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delta:
    """The dimensions of Kimi delta attention; a full-rank gate is part of the merged projection."""

    hidden: int
    heads: int
    size: int
    kernel: int
    full_rank_gate: bool
    layers: frozenset[int]

    @property
    def width(self) -> int:
        return self.heads * self.size


def build_kimi_linear(keys: ConfigKeys) -> Decoder:
    """Return a Kimi Linear or the language model of a Kimi K3; source: vLLM `models.kimi_k3`."""
    latent, delta = read_latent(keys), _read_delta(keys)
    residual = tuple(_residual(keys, latent.hidden))
    norms = (layer_norms(latent.hidden), *residual)
    mlps = (gated_mlp("mlp", latent.hidden, keys.required_size("intermediate_size")), tuple(_experts(keys)))
    attentions = (tuple(_latent(keys, latent)), tuple(_delta_attention(delta)))
    caches = (latent.cache(), _state(delta))
    layers = {
        (is_delta, sparse): layer_of((*attentions[is_delta], *norms, *mlps[sparse]), caches[is_delta])
        for is_delta in (False, True)
        for sparse in (False, True)
    }
    sparse = _sparse_layers(keys)
    return assemble(
        keys,
        (layers[place in delta.layers, holds] for place, holds in enumerate(sparse)),
        width=keys.required_size("intermediate_size"),
        heads=Heads(hidden=latent.hidden, queries=latent.heads, kv=1, size=latent.kv_rank + latent.rope),
        ends=_ends(keys, latent.hidden),
        ties=False,
    )


def _read_delta(keys: ConfigKeys) -> _Delta:
    """As the checkpoint states it, or as transformers' own configuration class does."""
    stated = keys.mapping("linear_attn_config")
    if stated is None:
        return _transformers_delta(keys)
    if keys.value("mla_use_nope") is False:
        raise unknown("mla_use_nope", "latent attention with positions is not planned yet for this family.")
    inner = ConfigKeys(stated, {}, {})
    layers = inner.value("kda_layers")
    if not isinstance(layers, list | tuple):
        raise inner.wrong("kda_layers", layers, "a list of layers")
    return _Delta(
        hidden=keys.required_size("hidden_size"),
        heads=inner.required_size("num_heads"),
        size=inner.required_size("head_dim"),
        kernel=inner.required_size("short_conv_kernel_size"),
        full_rank_gate=inner.flag("use_full_rank_gate"),
        layers=frozenset(int(layer) - 1 for layer in layers),
    )


def _transformers_delta(keys: ConfigKeys) -> _Delta:
    kinds = texts(keys, "layer_types")
    if kinds is None:
        raise unknown("linear_attn_config", "a Kimi Linear that does not say which layers are linear is not planned.")
    return _Delta(
        hidden=keys.required_size("hidden_size"),
        heads=keys.required_size("linear_num_heads"),
        size=keys.required_size("linear_head_dim"),
        kernel=keys.required_size("linear_conv_kernel_dim"),
        full_rank_gate=False,
        layers=frozenset(place for place, kind in enumerate(kinds) if kind == LINEAR),
    )


def _delta_attention(delta: _Delta) -> Iterator[Module]:
    name, width = "self_attn", delta.width
    merged = ("q_proj", "k_proj", "v_proj", *(("g_proj",) if delta.full_rank_gate else ()))
    yield Linear(
        name=f"{name}.in_proj_qkvgfab",
        inputs=delta.hidden,
        shards=(
            *(Shard(name=shard, outputs=width) for shard in merged),
            Shard(name="f_a_proj", outputs=delta.size, units=1),
            Shard(name="b_proj", outputs=delta.heads),
        ),
        output_multiple=ALIGNED_OUTPUTS if delta.full_rank_gate else 1,
    )
    yield column(f"{name}.f_b_proj", delta.size, ("f_b_proj", width))
    if not delta.full_rank_gate:
        yield replicated(f"{name}.g_a_proj", delta.hidden, delta.size)
        yield column(f"{name}.g_b_proj", delta.size, ("g_b_proj", width))
    yield Tensor(name=f"{name}.conv1d", elements=3 * width * delta.kernel, sharded=True, dtype=FLOAT32)
    yield Tensor(name=f"{name}.dt_bias", elements=width, sharded=True, dtype=FLOAT32)
    yield Tensor(name=f"{name}.A_log", elements=delta.heads, sharded=True, dtype=FLOAT32)
    yield norm(f"{name}.o_norm", delta.size)
    yield row(f"{name}.o_proj", width, delta.hidden)
    if delta.full_rank_gate and delta.heads in FUSED_DECODE_HEADS and (delta.size, delta.kernel) == FUSED_DECODE_SIZES:
        yield from _fused_decode(delta, name)


def _fused_decode(delta: _Delta, name: str) -> Iterator[Tensor]:
    """Copies of the convolution and the norm for the fused kernel, where a rank has a number of heads that it knows."""
    ranks = delta.heads // min(FUSED_DECODE_HEADS)
    copy = Tensor(
        name=f"{name}.decode_conv1d",
        elements=3 * delta.width * delta.kernel,
        sharded=True,
        dtype=FLOAT32,
        is_buffer=True,
        most_ranks=ranks,
    )
    yield copy
    yield replace(copy, name=f"{name}.decode_norm", elements=delta.size, sharded=False)


def _state(delta: _Delta) -> StateCache:
    return StateCache(
        kind="kda",
        conv_kernel=delta.kernel,
        num_heads=delta.heads,
        head_dim=delta.size,
        key_heads=delta.heads,
        key_head_dim=delta.size,
    )


def _latent(keys: ConfigKeys, latent: Latent) -> Iterator[Module]:
    name, gated = "self_attn", keys.flag("mla_use_output_gate")
    gate = Shard(name="g_proj", outputs=latent.heads * latent.value)
    down = Shard(name="kv_a_proj_with_mqa", outputs=latent.kv_rank + latent.rope, units=1)
    if latent.query_rank is None:
        yield column(f"{name}.q_proj", latent.hidden, ("q_proj", latent.query_width))
        yield Linear(name=f"{name}.kv_a_proj_with_mqa", inputs=latent.hidden, shards=(down,), split=Split.REPLICATED)
        if gated:
            yield Linear(name=f"{name}.g_proj", inputs=latent.hidden, shards=(gate,))
    else:
        shards = (Shard(name="q_a_proj", outputs=latent.query_rank, units=1), down, *((gate,) if gated else ()))
        yield Linear(name=f"{name}.fused_qkv_a_{'g_' if gated else ''}proj", inputs=latent.hidden, shards=shards)
        yield norm(f"{name}.q_a_layernorm", latent.query_rank)
        yield column(f"{name}.q_b_proj", latent.query_rank, ("q_b_proj", latent.query_width))
    yield norm(f"{name}.kv_a_layernorm", latent.kv_rank)
    yield expansion(latent, name)
    yield row(f"{name}.o_proj", latent.heads * latent.value, latent.hidden)
    yield Tensor(name=f"{name}.attn.scales", elements=5, dtype=FLOAT32, is_buffer=True)


def _experts(keys: ConfigKeys) -> Iterator[Module]:
    """Experts may work on a latent narrower than the hidden state."""
    mixture = read_mixture(keys, top_k="num_experts_per_token", shared="num_shared_experts")
    yield router(mixture, name=f"{SPARSE}.gate")
    yield selection_bias(mixture.count, name=f"{SPARSE}.gate.e_score_correction_bias")
    yield from shared_experts(mixture, name=f"{SPARSE}.shared_experts")
    narrow = keys.size("routed_expert_hidden_size")
    if narrow is not None:
        yield replicated(f"{SPARSE}.routed_expert_down_proj", mixture.hidden_size, narrow)
        yield replicated(f"{SPARSE}.routed_expert_up_proj", narrow, mixture.hidden_size)
        if keys.flag("latent_moe_use_norm"):
            yield norm(f"{SPARSE}.routed_expert_norm", narrow)
    least = keys.size("min_moe_intermediate_per_partition") or LEAST_EXPERT_WIDTH
    experts = routed(replace(mixture, hidden_size=narrow or mixture.hidden_size), name=SPARSE)
    yield replace(experts, least_width=least)


def _sparse_layers(keys: ConfigKeys) -> tuple[bool, ...]:
    every = keys.size("moe_layer_freq") or 1
    layers = keys.required_size("num_hidden_layers")
    if keys.has("mlp_layer_types"):
        return sparse_layers(keys, layers)
    first = whole_number(keys, "first_k_dense_replace")
    return tuple(place >= first and place % every == 0 for place in range(layers))


def _residual(keys: ConfigKeys, hidden: int) -> Iterator[Module]:
    """Attention over the residuals of earlier blocks: a norm and a weight before each half of a layer."""
    if keys.size("attn_res_block_size") is not None:
        yield norm("residual norms and weights", hidden, vectors=4)


def _ends(keys: ConfigKeys, hidden: int) -> Ends:
    ends = plain_ends(keys, tied=False)
    if keys.size("attn_res_block_size") is None:
        return ends
    return replace(ends, last=(norm("final residual norm and weight", hidden, vectors=2), *ends.last))


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "KimiLinearForCausalLM": Architecture(
            model_type="kimi_linear",
            build=build_kimi_linear,
            names={"max_position_embeddings": "model_max_length"},
            first="0.11.1",
        )
    }
)
