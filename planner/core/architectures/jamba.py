"""Jamba: Mamba 1 mixers with attention in every eighth layer, experts in every second one.

Source: vLLM 0.32 `models.jamba`; transformers 5.19 `JambaConfig`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, moved_everywhere, plain_ends
from planner.core.architectures.mixture import read_mixture, routed, router, whole_number
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.modules import Module, gated_mlp
from planner.core.state_space import Mamba1

STEP_RANK_DIVISOR = 16


def build(keys: ConfigKeys) -> Decoder:
    """Return the decoder; it has no positions at all, and vLLM never ties its head."""
    heads = read_heads(keys)
    heads = replace(heads, size=heads.hidden // heads.queries)
    mixer = _mixer(keys, heads.hidden)
    indices = range(keys.required_size("num_hidden_layers"))
    held = [(_comes(keys, "attn_layer", index), _comes(keys, "expert_layer", index)) for index in indices]
    made = {each: _layer(keys, heads, mixer, attends=each[0], chooses=each[1]) for each in dict.fromkeys(held)}
    decoder = assemble(
        keys,
        [made[each] for each in held],
        width=keys.required_size("intermediate_size"),
        heads=heads,
        ends=moved_everywhere(plain_ends(keys, tied=False), "embed_tokens", "final norm", "lm_head"),
    )
    return replace(decoder, tie_word_embeddings=False)


def _layer(keys: ConfigKeys, heads: Heads, mixer: Mamba1, *, attends: bool, chooses: bool) -> Layer:
    mixing = attention(heads) if attends else mixer.modules("mixer")
    modules = (*mixing, *_feed_forward(keys, heads.hidden, sparse=chooses), layer_norms(heads.hidden))
    return Layer(modules=modules, caches=(heads.cache() if attends else mixer.cache(),))


def _comes(keys: ConfigKeys, what: str, index: int) -> bool:
    offset = whole_number(keys, f"{what}_offset")
    return index % keys.required_size(f"{what}_period") == offset


def _mixer(keys: ConfigKeys, hidden: int) -> Mamba1:
    rank = keys.value("mamba_dt_rank")
    return Mamba1(
        hidden=hidden,
        inner=keys.required_size("mamba_expand") * hidden,
        state=keys.required_size("mamba_d_state"),
        kernel=keys.required_size("mamba_d_conv"),
        step_rank=math.ceil(hidden / STEP_RANK_DIVISOR)
        if rank in (None, "auto")
        else keys.required_size("mamba_dt_rank"),
        conv_bias=keys.flag("mamba_conv_bias"),
        bias=keys.flag("mamba_proj_bias"),
        normalises=True,
    )


def _feed_forward(keys: ConfigKeys, hidden: int, *, sparse: bool) -> Iterator[Module]:
    if not sparse or keys.required_size("num_experts") == 1:
        yield from gated_mlp("feed_forward", hidden, keys.required_size("intermediate_size"))
        return
    mixture = read_mixture(keys, width="intermediate_size")
    yield router(mixture, name="feed_forward.router")
    yield routed(mixture, name="feed_forward")


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"JambaForCausalLM": Architecture(model_type="jamba", build=build)}
)
