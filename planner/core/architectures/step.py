"""Step 3 and 3.5: experts in the layers that a list names, one shared expert."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, require_untied
from planner.core.architectures.mixture import FLOAT32, Mixture, read_mixture, routed, router, selection_bias
from planner.core.config_keys import ConfigKeys, finite
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.errors import BadInput
from planner.core.grouped_attention import Heads, attention
from planner.core.layer_types import FULL, SLIDING, layer_types
from planner.core.model_scope import unknown
from planner.core.modules import Module, column, gated_mlp, kv_scales, norm, replicated, row
from planner.core.rope import Rope, read_rope

GROUPS = {"num_key_value_heads": "num_attention_groups"}
STEP3P7_NAMES = {"moe_num_experts": "num_experts", "moe_top_k": "num_experts_per_tok"}
STEP3_POSITIONS = 65_536
STEP3_GROUPS = 1


def build_step3(keys: ConfigKeys) -> Decoder:
    """Return a Step 3, whose queries share a projection down (MFA); source: vLLM `models.step3_text`."""
    require_untied(keys)
    hidden, queries = keys.required_size("hidden_size"), keys.required_size("num_attention_heads")
    heads = Heads(hidden=hidden, queries=queries, kv=STEP3_GROUPS, size=keys.required_size("head_dim"))
    mixture = _mixture(keys)
    sparse = (
        routed(mixture, name="moe"),
        router(mixture, name="moe.gate"),
        *gated_mlp("share_expert", hidden, mixture.shared_width),
    )
    shared = (*_shared_query_attention(keys, heads), layer_norms(hidden))
    mlps = (gated_mlp("mlp", hidden, keys.required_size("intermediate_size")), sparse)
    dense_layer, sparse_layer = (layer_of((*shared, *mlp), heads.cache()) for mlp in mlps)
    holds_experts = _layers_with_experts(keys)
    return assemble(
        keys,
        (sparse_layer if holds else dense_layer for holds in holds_experts),
        width=keys.required_size("intermediate_size"),
        heads=heads,
        ropes=(read_rope(keys, head_dim=heads.size, positions=keys.size("max_position_embedding") or STEP3_POSITIONS),),
        ties=False,
    )


def build_step3p5(keys: ConfigKeys) -> Decoder:
    """Return a Step 3.5, whose windowed layers have heads of their own; source: vLLM `models.step3p5`."""
    require_untied(keys)
    heads = {FULL: _heads(keys), SLIDING: _windowed_heads(keys)}
    kinds = layer_types(keys, lambda place: FULL if place % 2 else SLIDING)
    return assemble(
        keys,
        _step3p5_layers(keys, heads, kinds),
        width=keys.required_size("intermediate_size"),
        heads=heads[FULL],
        ropes=tuple(_rope(keys, heads[kind], kind, place) for place, kind in enumerate(kinds)),
        experts_on_every_stage=True,
    )


def _step3p5_layers(keys: ConfigKeys, heads: Mapping[str, Heads], kinds: tuple[str, ...]) -> Iterator[Layer]:
    hidden, window = keys.required_size("hidden_size"), keys.required_size("sliding_window")
    mlps = (gated_mlp("mlp", hidden, keys.required_size("intermediate_size")), tuple(_step3p5_experts(keys)))
    for place, (kind, holds) in enumerate(zip(kinds, _layers_with_experts(keys), strict=True)):
        held = heads[kind]
        modules = (*attention(held, qkv_bias=keys.flag("attention_bias"), normalises=True), *_gate(keys, held))
        cache = held.cache(window=window if kind == SLIDING else None)
        rope = _rope(keys, held, kind, place)
        yield layer_of((*modules, layer_norms(hidden), *mlps[holds]), cache, ropes=(rope,))


def _step3p5_experts(keys: ConfigKeys) -> Iterator[Module]:
    mixture = _mixture(keys)
    yield router(mixture, name="moe.gate", dtype=FLOAT32)
    yield selection_bias(mixture.count, name="moe.router_bias")
    yield from gated_mlp("moe.share_expert", mixture.hidden_size, mixture.shared_width)
    yield routed(mixture, name="moe")


def _mixture(keys: ConfigKeys) -> Mixture:
    mixture = read_mixture(keys, count="moe_num_experts", top_k="moe_top_k")
    return replace(mixture, shared_width=keys.size("share_expert_dim") or mixture.width * mixture.top_k)


def _layers_with_experts(keys: ConfigKeys) -> tuple[bool, ...]:
    """The layers of `moe_layers_enum`, a comma-separated list; all but the first where it is absent."""
    layers, stated = keys.required_size("num_hidden_layers"), keys.text("moe_layers_enum")
    if stated is None:
        return tuple(place > 0 for place in range(layers))
    try:
        places = {int(text) for text in stated.strip().split(",")}
    except ValueError:
        raise keys.wrong("moe_layers_enum", stated, "whole numbers separated by commas") from None
    return tuple(place in places for place in range(layers))


def _shared_query_attention(keys: ConfigKeys, heads: Heads) -> Iterator[Module]:
    width = keys.size("share_q_dim") or heads.size
    yield replicated("self_attn.qkv_proj", heads.hidden, width + 2 * heads.size)
    yield row("self_attn.o_proj", heads.width, heads.hidden)
    yield norm("self_attn.inter_norm", width)
    yield column("self_attn.wq", width, ("wq", heads.width))
    yield kv_scales("self_attn.attn")


def _heads(keys: ConfigKeys) -> Heads:
    queries, kv = keys.required_size("num_attention_heads"), keys.required_size("num_key_value_heads")
    hidden = keys.required_size("hidden_size")
    return Heads(hidden=hidden, queries=queries, kv=kv, size=keys.size("head_dim") or hidden // queries)


def _windowed_heads(keys: ConfigKeys) -> Heads:
    """What `attention_other_setting` says of the kind of layer that it names."""
    stated = keys.mapping("attention_other_setting")
    if stated is None:
        raise unknown("attention_other_setting", "a Step 3.5 without the heads of its windows is not planned.")
    other = ConfigKeys(stated, {}, {})
    if other.text("attention_type") != SLIDING:
        raise unknown("attention_other_setting", f"heads of {other.text('attention_type')!r} are not planned.")
    return Heads(
        hidden=keys.required_size("hidden_size"),
        queries=other.required_size("num_attention_heads"),
        kv=other.required_size("num_attention_groups"),
        size=other.required_size("head_dim"),
    )


def _gate(keys: ConfigKeys, heads: Heads) -> Iterator[Module]:
    if keys.flag("use_head_wise_attn_gate"):
        yield column("self_attn.g_proj", heads.hidden, ("g_proj", heads.queries))


def _rope(keys: ConfigKeys, heads: Heads, kind: str, place: int) -> Rope:
    """Base and rotated share may differ layer by layer; scaling holds for the kinds that `yarn_only_types` names."""
    only = keys.value("yarn_only_types") or ()
    scaled = not only or (isinstance(only, list | tuple) and kind in only)
    scaling = dict(keys.mapping("rope_scaling") or {}) if scaled else {}
    scaling["partial_rotary_factor"] = _of_layer(keys, "partial_rotary_factors", place, 1.0)
    rope = read_rope(keys, head_dim=heads.size, scaling=scaling)
    return replace(rope, base=_of_layer(keys, "rope_theta", place, 500_000.0))


def _of_layer(keys: ConfigKeys, name: str, place: int, default: float) -> float:
    value = keys.value(name) or default
    if not isinstance(value, list | tuple):
        return finite(name, value)
    if len(value) <= place:
        message = f"{name} has {len(value)} values for more layers."
        raise BadInput(field=name, message=message, fix=f"give {name} a value for each layer")
    return finite(name, value[place])


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "Step3TextForCausalLM": Architecture(model_type="step3_text", build=build_step3, first="0.10.1"),
        "Step3p5ForCausalLM": Architecture(model_type="step3p5", build=build_step3p5, names=GROUPS, first="0.15.1"),
        "Step3p7FlashForCausalLM": Architecture(
            model_type="step3p7", build=build_step3p5, names=STEP3P7_NAMES, first="0.15.1", checked=False
        ),
    }
)
