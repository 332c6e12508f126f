"""MiMo V2: windows with heads of their own in most layers, values narrower than keys, learned sinks."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, require_untied
from planner.core.architectures.glm_moe import balanced
from planner.core.architectures.mixture import flags_by_layer, read_mixture
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder
from planner.core.grouped_attention import Heads, attention
from planner.core.modules import Module, Tensor, gated_mlp
from planner.core.rope import Rope, read_rope

DEFAULT_BASE = 1_000_000.0
ROUTER_DTYPE_WHEN_ABSENT = "float32"


def build_mimo_v2(keys: ConfigKeys) -> Decoder:
    """Return a MiMo V2; source: vLLM `models.mimo_v2`."""
    require_untied(keys)
    count = keys.required_size("num_hidden_layers")
    slides, sparse = (flags_by_layer(keys, name, count) for name in ("hybrid_layer_pattern", "moe_layer_freq"))
    hidden = keys.required_size("hidden_size")
    mlps = (gated_mlp("mlp", hidden, keys.required_size("intermediate_size")), tuple(_experts(keys)))
    attentions = (tuple(_attention(keys, "")), tuple(_attention(keys, "swa_")))
    heads = (_heads(keys, ""), _heads(keys, "swa_"))
    windows = (None, keys.required_size("sliding_window_size"))
    ropes = (_rope(keys, "rope_theta", heads[0]), _rope(keys, "swa_rope_theta", heads[1]))
    layers = {
        (slide, is_sparse): layer_of(
            (*attentions[slide], layer_norms(hidden), *mlps[is_sparse]),
            heads[slide].cache(window=windows[slide], has_sinks=_has_sinks(keys, slide)),
            ropes=(ropes[slide],),
        )
        for slide in (False, True)
        for is_sparse in (False, True)
    }
    return assemble(
        keys,
        (layers[place] for place in zip(slides, sparse, strict=True)),
        width=keys.required_size("intermediate_size"),
        heads=heads[0],
        ropes=ropes,
        ties=False,
    )


def _heads(keys: ConfigKeys, prefix: str) -> Heads:
    size, value = keys.required_size(f"{prefix}head_dim"), keys.size(f"{prefix}v_head_dim")
    return Heads(
        hidden=keys.required_size("hidden_size"),
        queries=keys.required_size(f"{prefix}num_attention_heads"),
        kv=keys.required_size(f"{prefix}num_key_value_heads"),
        size=size,
        value_size=value if value != size else None,
    )


def _has_sinks(keys: ConfigKeys, slides: bool) -> bool:
    return keys.flag("add_swa_attention_sink_bias" if slides else "add_full_attention_sink_bias")


def _attention(keys: ConfigKeys, prefix: str) -> Iterable[Module]:
    heads = _heads(keys, prefix)
    yield from attention(heads, qkv_bias=keys.flag("attention_bias"))
    if _has_sinks(keys, bool(prefix)):
        yield Tensor(name="self_attn.attention_sink_bias", elements=heads.queries, sharded=True)


def _experts(keys: ConfigKeys) -> Iterable[Module]:
    mixture = read_mixture(keys, count="n_routed_experts")
    return balanced(mixture, dtype=keys.text("moe_router_dtype") or ROUTER_DTYPE_WHEN_ABSENT)


def _rope(keys: ConfigKeys, base: str, heads: Heads) -> Rope:
    rotation = {"rope_type": "default", "partial_rotary_factor": keys.number("partial_rotary_factor") or 1.0}
    rope = read_rope(keys, head_dim=heads.size, scaling=rotation)
    return replace(rope, base=keys.number(base) or keys.number("rope_theta") or DEFAULT_BASE)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "MiMoV2FlashForCausalLM": Architecture(model_type="mimo_v2_flash", build=build_mimo_v2, first="0.14"),
        "MiMoV2ForCausalLM": Architecture(model_type="mimo_v2", build=build_mimo_v2, first="0.21"),
    }
)
