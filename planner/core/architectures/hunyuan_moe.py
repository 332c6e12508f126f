"""Hunyuan A13B and FlexOlmo: experts in every layer, built by the Transformers modelling backend in newer releases."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, model_window, plain_ends
from planner.core.architectures.mixture import Mixture, read_mixture, routed, router
from planner.core.architectures.query_norms import whole_norms
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder
from planner.core.grouped_attention import attention, read_heads
from planner.core.model_scope import unknown
from planner.core.modules import Module, gated_mlp
from planner.core.rope import read_rope

TRANSFORMERS_SINCE = "0.29"


def build_hunyuan_moe(keys: ConfigKeys) -> Decoder:
    """Return a Hunyuan mixture; source: vLLM `models.hunyuan_v1` (0.28), transformers `HunYuanMoEV1Model`."""
    if keys.flag("use_cla"):
        raise unknown("use_cla", "keys and values shared across layers are not planned yet for this family.")
    heads, mixture = read_heads(keys), _mixture(keys)
    bias = keys.flag("attention_bias")
    modules = (
        *attention(heads, qkv_bias=bias, o_bias=bias, normalises=True),
        *_experts(keys, mixture),
        layer_norms(heads.hidden),
    )
    return assemble(
        keys,
        (layer_of(modules, heads.cache()),) * keys.required_size("num_hidden_layers"),
        width=keys.required_size("intermediate_size"),
        heads=heads,
        ropes=(read_rope(keys, head_dim=heads.size),),
    )


def _experts(keys: ConfigKeys, mixture: Mixture) -> Iterator[Module]:
    yield router(mixture, name="mlp.gate")
    if _same(keys, "num_shared_expert", 1):
        yield from gated_mlp("mlp.shared_mlp", mixture.hidden_size, keys.required_size("intermediate_size"))
    yield routed(mixture)


def _mixture(keys: ConfigKeys) -> Mixture:
    return Mixture(
        hidden_size=keys.required_size("hidden_size"),
        count=_same(keys, "num_experts", 1),
        top_k=_same(keys, "moe_topk", 1),
        width=_same(keys, "moe_intermediate_size", 0) or keys.required_size("intermediate_size"),
    )


def _same(keys: ConfigKeys, name: str, default: int) -> int:
    """A number, or one a layer if they are all the same; layers that differ are Unknown."""
    value = keys.value(name)
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if len(set(values)) != 1:
        raise unknown(name, f"layers that differ in {name} are not planned yet.")
    if values[0] is None:
        return default
    if isinstance(values[0], bool) or not isinstance(values[0], int):
        raise keys.wrong(name, value, "a whole number, or one a layer")
    return values[0]


def build_flex_olmo(keys: ConfigKeys) -> Decoder:
    """Return a FlexOlmo; source: vLLM `models.flex_olmo` (0.28), transformers `FlexOlmoModel`."""
    heads = read_heads(keys)
    mixture = read_mixture(keys, width="intermediate_size")
    modules = (
        *attention(heads, qkv_bias=keys.flag("attention_bias"), o_bias=keys.flag("attention_bias")),
        *whole_norms(heads),
        router(mixture),
        routed(mixture),
        layer_norms(heads.hidden),
    )
    return assemble(
        keys,
        (layer_of(modules, heads.cache(window=model_window(keys))),) * keys.required_size("num_hidden_layers"),
        width=mixture.width,
        heads=heads,
        ends=plain_ends(keys),
        ropes=(read_rope(keys, head_dim=heads.size),),
    )


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "HunYuanMoEV1ForCausalLM": Architecture(
            model_type="hunyuan_v1_moe",
            build=build_hunyuan_moe,
            first="0.9.2",
            transformers_since=TRANSFORMERS_SINCE,
        ),
        "FlexOlmoForCausalLM": Architecture(
            model_type="flex_olmo", build=build_flex_olmo, first="0.11.1", transformers_since=TRANSFORMERS_SINCE
        ),
    }
)
