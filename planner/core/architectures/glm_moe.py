"""GLM-4.5 and its kin: grouped attention, and experts beside shared ones after the first dense layers."""

from collections.abc import Iterable, Iterator, Mapping
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
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.grouped_attention import attention, read_heads
from planner.core.modules import Module, gated_mlp
from planner.core.rope import read_rope


def build_glm4_moe(keys: ConfigKeys) -> Decoder:
    """Return a GLM-4.5 mixture; source: vLLM `models.glm4_moe`."""
    heads = read_heads(keys)
    mixture = read_mixture(keys, count="n_routed_experts", shared="n_shared_experts")
    shared = (
        *attention(heads, qkv_bias=keys.flag("attention_bias"), normalises=keys.flag("use_qk_norm")),
        layer_norms(heads.hidden),
    )
    dense, sparse = (layer_of((*shared, *mlp), heads.cache()) for mlp in (dense_mlp(keys), balanced(mixture)))
    first = whole_number(keys, "first_k_dense_replace")
    return assemble(
        keys,
        after_dense(keys, dense, sparse, first),
        width=keys.required_size("intermediate_size"),
        heads=heads,
        ropes=(read_rope(keys, head_dim=heads.size),),
    )


def after_dense(keys: ConfigKeys, dense: Layer, sparse: Layer, first: int) -> Iterator[Layer]:
    """Yield the layers where the first ones are dense and all others hold experts."""
    return (sparse if place >= first else dense for place in range(keys.required_size("num_hidden_layers")))


def dense_mlp(keys: ConfigKeys, *, bias: bool = False) -> Iterable[Module]:
    """Return the MLP of a layer without experts."""
    return gated_mlp("mlp", keys.required_size("hidden_size"), keys.required_size("intermediate_size"), bias=bias)


def balanced(
    mixture: Mixture, *, bias: str = "mlp.gate.e_score_correction_bias", dtype: str | None = FLOAT32
) -> Iterator[Module]:
    """Yield a router (of that dtype) with the bias that balances the experts, shared and routed experts."""
    yield router(mixture, dtype=dtype)
    yield selection_bias(mixture.count, name=bias)
    yield from shared_experts(mixture)
    yield routed(mixture)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"Glm4MoeForCausalLM": Architecture(model_type="glm4_moe", build=build_glm4_moe, first="0.10")}
)
