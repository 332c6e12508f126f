"""DeepSeek V2, V3 and their kin: latent attention, and experts beside shared ones after the first dense layers."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of
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
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.latent_attention import latent_attention, read_latent
from planner.core.layer_types import texts
from planner.core.modules import Module, gated_mlp
from planner.core.rope import read_rope

SPARSE = "sparse"


def build_deepseek(keys: ConfigKeys) -> Decoder:
    """Return a DeepSeek V2 or V3; source: vLLM `models.deepseek_v2`."""
    return latent_mixture(keys, router_dtype=None, chooses_by_bias=keys.text("topk_method") == "noaux_tc")


def build_deepseek_v1(keys: ConfigKeys) -> Decoder:
    """Return the first DeepSeek mixture, whose attention has grouped heads; source: vLLM `models.deepseek_v2`."""
    heads = read_heads(keys)
    heads = Heads(hidden=heads.hidden, queries=heads.queries, kv=heads.kv, size=heads.hidden // heads.queries)
    shared = (*attention(heads), layer_norms(heads.hidden))
    mlps = deepseek_mlps(keys, router_dtype=None, chooses_by_bias=False)
    dense, sparse = (layer_of((*shared, *mlp), heads.cache()) for mlp in mlps)
    return assemble(
        keys,
        (sparse if is_sparse(keys, place) else dense for place in range(keys.required_size("num_hidden_layers"))),
        width=keys.required_size("intermediate_size"),
        heads=heads,
        ropes=(read_rope(keys, head_dim=heads.size),),
        ties=False,
    )


def build_glm_lite(keys: ConfigKeys) -> Decoder:
    """Return a GLM-4.7 Flash; source: vLLM `models.glm4_moe_lite`."""
    decoder = latent_mixture(keys, router_dtype=FLOAT32, chooses_by_bias=True)
    return replace(decoder, experts_on_every_stage=True)


def build_axk1(keys: ConfigKeys) -> Decoder:
    """Return an A.X K1, which has a norm after its MLP too; source: vLLM `models.AXK1`."""
    chooses_by_bias = (keys.text("topk_method") or "noaux_tc") == "noaux_tc"
    return latent_mixture(keys, router_dtype=None, chooses_by_bias=chooses_by_bias, norms=3)


def latent_mixture(keys: ConfigKeys, *, router_dtype: str | None, chooses_by_bias: bool, norms: int = 2) -> Decoder:
    """Return a decoder of DeepSeek's layout."""
    latent = read_latent(keys)
    shared = (*latent_attention(latent), layer_norms(latent.hidden, norms))
    mlps = deepseek_mlps(keys, router_dtype=router_dtype, chooses_by_bias=chooses_by_bias)
    dense, sparse = (layer_of((*shared, *mlp), latent.cache()) for mlp in mlps)
    return assemble(
        keys,
        (sparse if is_sparse(keys, place) else dense for place in range(keys.required_size("num_hidden_layers"))),
        width=keys.required_size("intermediate_size"),
        heads=Heads(hidden=latent.hidden, queries=latent.heads, kv=1, size=latent.kv_rank + latent.rope),
        ropes=(read_rope(keys, head_dim=latent.rope, rotary_dim=latent.rope),),
        ties=False,
    )


def is_sparse(keys: ConfigKeys, layer: int) -> bool:
    """Return whether a layer holds experts: as `mlp_layer_types` says where no number of dense layers is stated."""
    kinds = texts(keys, "mlp_layer_types")
    if kinds is not None and layer < len(kinds) and "first_k_dense_replace" not in keys.config:
        return kinds[layer] == SPARSE
    every = keys.size("moe_layer_freq") or 1
    return layer >= whole_number(keys, "first_k_dense_replace") and layer % every == 0


def deepseek_mlps(
    keys: ConfigKeys, *, router_dtype: str | None, chooses_by_bias: bool
) -> tuple[tuple[Module, ...], tuple[Module, ...]]:
    """Return the MLP of a dense layer and of one with experts."""
    dense = gated_mlp("mlp", keys.required_size("hidden_size"), keys.required_size("intermediate_size"))
    mixture = read_mixture(keys, count="n_routed_experts", shared="n_shared_experts")
    return dense, tuple(_sparse(mixture, router_dtype=router_dtype, chooses_by_bias=chooses_by_bias))


def _sparse(mixture: Mixture, *, router_dtype: str | None, chooses_by_bias: bool) -> Iterator[Module]:
    yield router(mixture, dtype=router_dtype)
    if chooses_by_bias:
        yield selection_bias(mixture.count)
    yield from shared_experts(mixture)
    yield routed(mixture)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "DeepseekForCausalLM": Architecture(model_type="deepseek", build=build_deepseek_v1),
        "DeepseekV2ForCausalLM": Architecture(model_type="deepseek_v2", build=build_deepseek),
        "DeepseekV3ForCausalLM": Architecture(model_type="deepseek_v3", build=build_deepseek),
        "Glm4MoeLiteForCausalLM": Architecture(model_type="glm4_moe_lite", build=build_glm_lite, first="0.15"),
        "MistralLarge3ForCausalLM": Architecture(model_type="mistral4", build=build_deepseek, first="0.12"),
        "AXK1ForCausalLM": Architecture(model_type="axk1", build=build_axk1, first="0.17"),
    }
)
