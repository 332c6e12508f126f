"""OLMo hybrid: Gated DeltaNet in three of four layers, attention with norms over all heads in the fourth.

Source: vLLM 0.32 `models.olmo_hybrid`, `layers.mamba.gdn.olmo_gdn_linear_attn`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, moved_everywhere, plain_ends
from planner.core.architectures.query_norms import whole_norms
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.delta_net import DeltaNet
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.layer_types import FULL, LINEAR, layer_types, require_kinds
from planner.core.modules import Module, Tensor, column, gated_mlp, norm, row
from planner.core.rope import Rope, read_rope

KINDS = frozenset({FULL, LINEAR})
PERIOD = 4
KEYS_TO_HIDDEN = 0.75


def build(keys: ConfigKeys) -> Decoder:
    """Return the decoder."""
    heads = read_heads(keys)
    heads = replace(heads, size=heads.hidden // heads.queries)
    net = _net(keys, heads)
    width = keys.required_size("intermediate_size")
    rest = (*gated_mlp("mlp", heads.hidden, width), layer_norms(heads.hidden))
    ropes = _ropes(keys, heads.size)
    layers = {
        FULL: Layer(modules=(*attention(heads), *whole_norms(heads), *rest), caches=(heads.cache(),), ropes=ropes),
        LINEAR: Layer(modules=(*_recurrence(net), *rest), caches=(net.cache(),)),
    }
    last = keys.required_size("num_hidden_layers") - 1
    kinds = layer_types(
        keys, lambda index: FULL if index == min(last, PERIOD - 1) or index % PERIOD == PERIOD - 1 else LINEAR
    )
    require_kinds(kinds, KINDS)
    return assemble(
        keys,
        [layers[kind] for kind in kinds],
        width=width,
        heads=heads,
        ends=moved_everywhere(plain_ends(keys), "embed_tokens", "final norm", "lm_head"),
        ropes=ropes,
    )


def _net(keys: ConfigKeys, heads: Heads) -> DeltaNet:
    """Return the sizes of the states, which follow the heads where the config states none."""
    key_heads = keys.size("linear_num_key_heads") or heads.queries
    key_size = keys.size("linear_key_head_dim") or int(KEYS_TO_HIDDEN * heads.hidden / key_heads)
    return DeltaNet(
        hidden=heads.hidden,
        key_heads=key_heads,
        key_size=key_size,
        value_heads=keys.size("linear_num_value_heads") or heads.queries,
        value_size=keys.size("linear_value_head_dim") or 2 * key_size,
        kernel=keys.required_size("linear_conv_kernel_dim"),
    )


def _ropes(keys: ConfigKeys, head_dim: int) -> tuple[Rope, ...]:
    """A base of null says that positions are not rotated."""
    scaling = keys.mapping("rope_parameters")
    rotates = scaling is None or scaling.get("rope_theta", True) is not None
    return (read_rope(keys, head_dim=head_dim),) if rotates else ()


def _recurrence(net: DeltaNet, name: str = "linear_attn") -> Iterator[Module]:
    keys, values = net.keys_width, net.values_width
    shards = (("q_proj", keys), ("k_proj", keys), ("v_proj", values), ("g_proj", values))
    yield column(f"{name}.in_proj_qkvg", net.hidden, *shards)
    yield column(f"{name}.b_proj", net.hidden, ("b_proj", net.value_heads))
    yield column(f"{name}.a_proj", net.hidden, ("a_proj", net.value_heads))
    yield Tensor(name=f"{name}.conv1d", elements=(2 * keys + values) * net.kernel, sharded=True)
    yield Tensor(name=f"{name}.dt_bias", elements=net.value_heads, sharded=True)
    yield Tensor(name=f"{name}.A_log", elements=net.value_heads, sharded=True)
    yield norm(f"{name}.o_norm", net.value_size)
    yield row(f"{name}.o_proj", values, net.hidden)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"OlmoHybridForCausalLM": Architecture(model_type="olmo_hybrid", build=build, first="0.18")}
)
