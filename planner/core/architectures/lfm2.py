"""LFM2: short convolutions with attention in some layers, dense or with experts.

Source: vLLM 0.32 `models.lfm2`, `models.lfm2_moe`, `layers.mamba.short_conv`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, moved_everywhere, plain_ends
from planner.core.architectures.mixture import Mixture, read_mixture, routed, router, selection_bias, whole_number
from planner.core.cache_layer import StateCache
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.grouped_attention import Heads, read_heads
from planner.core.layer_types import FULL, layer_types
from planner.core.modules import Linear, Module, column, kv_scales, norm, qkv, row
from planner.core.rope import Rope, read_rope
from planner.core.tower import numbers
from planner.core.units import round_up

CONVOLUTION = "conv"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    keys: ConfigKeys
    heads: Heads
    width: int
    mixture: Mixture | None
    conv_width: int
    rope: Rope

    def layer(self, kind: str, *, sparse: bool) -> Layer:
        attends = kind == FULL
        mixing = self._attention() if attends else self._convolution()
        modules = (*mixing, *self._feed_forward(sparse=sparse), layer_norms(self.heads.hidden))
        state = StateCache(kind="short_conv", inner_size=self.conv_width, conv_kernel=self._taps())
        if attends:
            return Layer(modules=modules, caches=(self.heads.cache(),), ropes=(self.rope,))
        return Layer(modules=modules, caches=(state,))

    def _taps(self) -> int:
        return self.keys.required_size("conv_L_cache")

    def _attention(self) -> Iterator[Module]:
        heads = self.heads
        yield qkv(
            "self_attn.qkv_proj", hidden=heads.hidden, heads=heads.queries, kv_heads=heads.kv, head_dim=heads.size
        )
        yield row("self_attn.out_proj", heads.width, heads.hidden)
        yield norm("self_attn.q_layernorm", heads.size)
        yield norm("self_attn.k_layernorm", heads.size)
        yield kv_scales("self_attn.attn")

    def _convolution(self) -> Iterator[Module]:
        width, bias = self.conv_width, self.keys.flag("conv_bias")
        convolution = column("short_conv.conv", self._taps(), ("conv", width), bias=bias)
        yield replace(convolution, may_quantise=False)
        yield column("short_conv.in_proj", width, ("in_proj", 3 * width, 3), bias=bias)
        yield row("short_conv.out_proj", width, width, bias=bias)

    def _feed_forward(self, *, sparse: bool) -> Iterator[Module]:
        if self.mixture is None or not sparse:
            yield from _mlp(self.heads.hidden, self.width)
            return
        yield replace(router(self.mixture, name="feed_forward.gate"), may_quantise=True)
        if self.keys.value("use_expert_bias") is not False:
            yield selection_bias(self.mixture.count, name="feed_forward.gate.e_score_correction_bias")
        yield routed(self.mixture, name="feed_forward")


def _mlp(hidden: int, width: int) -> tuple[Linear, Linear]:
    return column("feed_forward.w13", hidden, ("w1", width), ("w3", width)), row("feed_forward.w2", width, hidden)


def build_lfm2(keys: ConfigKeys) -> Decoder:
    """Return the dense LFM2, whose MLP width is worked out from the stated one."""
    return _build(keys, width=_adjusted_width(keys), mixture=None)


def build_lfm2_moe(keys: ConfigKeys) -> Decoder:
    """Return the LFM2 with experts in all but the first layers."""
    return _build(keys, width=keys.required_size("intermediate_size"), mixture=read_mixture(keys))


def _build(keys: ConfigKeys, *, width: int, mixture: Mixture | None) -> Decoder:
    heads = read_heads(keys)
    heads = replace(heads, size=heads.hidden // heads.queries)
    conv_width = heads.hidden if mixture else keys.size("conv_dim") or heads.hidden
    rope = read_rope(keys, head_dim=heads.size)
    plan = _Plan(keys=keys, heads=heads, width=width, mixture=mixture, conv_width=conv_width, rope=rope)
    attending = numbers(keys, "full_attn_idxs")
    everywhere = not attending and not keys.has("full_attn_idxs")
    kinds = layer_types(keys, lambda index: FULL if everywhere or index in attending else CONVOLUTION)
    first_sparse = whole_number(keys, "num_dense_layers")
    held = [(kind, index >= first_sparse) for index, kind in enumerate(kinds)]
    layers = {(kind, sparse): plan.layer(kind, sparse=sparse) for kind, sparse in dict.fromkeys(held)}
    decoder = assemble(
        keys,
        [layers[each] for each in held],
        width=max(width, mixture.token_width if mixture else 0),
        heads=heads,
        ends=moved_everywhere(plain_ends(keys, tied=True), "embed_tokens"),
        ropes=(rope,),
    )
    return replace(decoder, tie_word_embeddings=True, experts_on_every_stage=mixture is not None)


def _adjusted_width(keys: ConfigKeys) -> int:
    stated = keys.size("block_ff_dim") or keys.required_size("intermediate_size")
    if not keys.flag("block_auto_adjust_ff_dim"):
        return stated
    factor = keys.number("block_ffn_dim_multiplier")
    narrowed = int(2 * stated / 3)
    widened = narrowed if factor is None else int(factor * narrowed)
    return round_up(widened, keys.required_size("block_multiple_of"))


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "Lfm2ForCausalLM": Architecture(model_type="lfm2", build=build_lfm2, first="0.10.2"),
        "Lfm2MoeForCausalLM": Architecture(model_type="lfm2_moe", build=build_lfm2_moe, first="0.11.1"),
    }
)
