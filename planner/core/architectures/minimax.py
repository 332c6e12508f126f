"""MiniMax: M2, whose norms run over the queries and the keys of all heads."""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of
from planner.core.architectures.mixture import FLOAT32, read_mixture, routed, router, selection_bias
from planner.core.architectures.query_norms import split_norms
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder
from planner.core.grouped_attention import attention, read_heads
from planner.core.rope import read_rope


def build_minimax_m2(keys: ConfigKeys) -> Decoder:
    """Return a MiniMax M2; source: vLLM `models.minimax_m2`."""
    heads = read_heads(keys)
    mixture = read_mixture(keys, count="num_local_experts", width="intermediate_size")
    chooses_by_bias = keys.flag("use_routing_bias")
    modules = (
        *attention(heads, qkv_bias=keys.flag("attention_bias")),
        *split_norms(heads),
        *((selection_bias(mixture.count, name="mlp.e_score_correction_bias"),) if chooses_by_bias else ()),
        routed(mixture),
        router(mixture, dtype=FLOAT32),
        layer_norms(heads.hidden),
    )
    layer = layer_of(modules, heads.cache())
    return assemble(
        keys,
        (layer,) * keys.required_size("num_hidden_layers"),
        width=mixture.width,
        heads=heads,
        ropes=(read_rope(keys, head_dim=heads.size, rotary_dim=keys.size("rotary_dim")),),
        ties=False,
    )


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"MiniMaxM2ForCausalLM": Architecture(model_type="minimax_m2", build=build_minimax_m2, first="0.11.1")}
)
