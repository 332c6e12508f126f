"""gpt-oss: windows in every other layer, learned sinks, biases everywhere, experts in every layer."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, plain_ends
from planner.core.architectures.mixture import FLOAT32, read_mixture, routed, router
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder
from planner.core.grouped_attention import attention, read_heads
from planner.core.modules import Tensor
from planner.core.rope import read_rope


def build_gpt_oss(keys: ConfigKeys) -> Decoder:
    """Return a gpt-oss, whose even layers have the window; source: vLLM `models.gpt_oss`."""
    heads = read_heads(keys)
    mixture = read_mixture(keys, count="num_local_experts", width="intermediate_size")
    modules = (
        *attention(heads, "attn", qkv_bias=True, o_bias=True),
        Tensor(name="attn.sinks", elements=heads.queries, sharded=True),
        router(mixture, name="mlp.router", bias=True),
        routed(mixture, bias=True),
        layer_norms(heads.hidden),
    )
    windowed, full = (
        layer_of(modules, heads.cache(window=window, has_sinks=True)) for window in (keys.size("sliding_window"), None)
    )
    decoder = assemble(
        keys,
        (full if place % 2 else windowed for place in range(keys.required_size("num_hidden_layers"))),
        width=mixture.width,
        heads=heads,
        ends=plain_ends(keys, embedding="embedding", tied=False),
        ropes=(replace(read_rope(keys, head_dim=heads.size), dtype=FLOAT32),),
        everywhere=True,
        ties=False,
    )
    return replace(decoder, repeats_kv_heads=False)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"GptOssForCausalLM": Architecture(model_type="gpt_oss", build=build_gpt_oss, first="0.10.1")}
)
