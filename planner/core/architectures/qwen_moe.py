"""Qwen's mixtures: experts in some or all layers, beside a shared expert that a gate weighs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of
from planner.core.architectures.mixture import Mixture, read_mixture, routed, router, shared_experts
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder
from planner.core.grouped_attention import attention, read_heads
from planner.core.model_scope import unknown
from planner.core.modules import Module, gated_mlp, replicated
from planner.core.rope import read_rope


def build_qwen_moe(keys: ConfigKeys, *, normalises: bool, bias: str) -> Decoder:
    """Return a Qwen mixture; source: vLLM `models.qwen2_moe`, `models.qwen3_moe`."""
    if keys.flag("use_sliding_window"):
        raise unknown("use_sliding_window", "windows are not planned yet for this family.")
    heads = read_heads(keys)
    mixture = read_mixture(keys, shared_width="shared_expert_intermediate_size")
    shared = (*attention(heads, qkv_bias=keys.flag(bias), normalises=normalises), layer_norms(heads.hidden))
    dense, sparse = (layer_of((*shared, *mlp), heads.cache()) for mlp in (_dense(keys), _sparse(mixture)))
    places = range(keys.required_size("num_hidden_layers"))
    return assemble(
        keys,
        (sparse if _is_sparse(keys, place) else dense for place in places),
        width=keys.size("intermediate_size") or mixture.width,
        heads=heads,
        ropes=(read_rope(keys, head_dim=heads.size),),
        everywhere=True,
        experts_on_every_stage=normalises,
    )


def _is_sparse(keys: ConfigKeys, layer: int) -> bool:
    dense = keys.value("mlp_only_layers") or ()
    if not isinstance(dense, list | tuple):
        raise keys.wrong("mlp_only_layers", dense, "a list of layers")
    return layer not in dense and (layer + 1) % (keys.size("decoder_sparse_step") or 1) == 0


def _dense(keys: ConfigKeys) -> tuple[Module, ...]:
    return gated_mlp("mlp", keys.required_size("hidden_size"), keys.required_size("intermediate_size"))


def _sparse(mixture: Mixture) -> Iterator[Module]:
    yield replace(router(mixture), may_quantise=not mixture.shared_width)  # Qwen3 leaves it to the ignore list
    if mixture.shared_width:
        yield replicated("mlp.shared_expert_gate", mixture.hidden_size, 1, may_quantise=False)
    yield from shared_experts(mixture, name="mlp.shared_expert")
    yield routed(mixture)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "Qwen2MoeForCausalLM": Architecture(
            model_type="qwen2_moe", build=partial(build_qwen_moe, normalises=False, bias="qkv_bias")
        ),
        "Qwen3MoeForCausalLM": Architecture(
            model_type="qwen3_moe",
            build=partial(build_qwen_moe, normalises=True, bias="attention_bias"),
            names={"num_experts": "num_local_experts"},
        ),
    }
)
