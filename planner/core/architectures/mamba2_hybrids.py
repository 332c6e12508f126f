"""Bamba, Falcon-H1 and Granite 4: Mamba 2 mixers beside attention, in layers of their own or in the same ones.

Source: vLLM 0.32 `models.falcon_h1`, `models.granitemoehybrid`, 0.23 `models.bamba`; transformers 5.19 for layer types.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, moved_everywhere, plain_ends
from planner.core.architectures.mixture import read_mixture, routed, router, whole_number
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.layer_types import FULL, LINEAR, layer_types, require_kinds
from planner.core.modules import Module, Tensor, column, gated_mlp, row
from planner.core.rope import Rope, read_rope
from planner.core.state_space import Mamba2
from planner.core.tower import numbers

OLDER_KINDS = {"attention": FULL, "mamba": LINEAR}
KINDS = frozenset({FULL, LINEAR})


def _mixer(keys: ConfigKeys, *, inner: int, normalises: bool = True) -> Mamba2:
    heads = keys.required_size("mamba_n_heads")
    stated = keys.value("mamba_d_head")
    return Mamba2(
        hidden=keys.required_size("hidden_size"),
        heads=heads,
        head_size=inner // heads if stated in (None, "auto") else keys.required_size("mamba_d_head"),
        groups=keys.required_size("mamba_n_groups"),
        state=keys.required_size("mamba_d_state"),
        kernel=keys.required_size("mamba_d_conv"),
        conv_bias=keys.flag("mamba_conv_bias"),
        bias=keys.flag("mamba_proj_bias"),
        normalises=normalises,
    )


def _expanded(keys: ConfigKeys) -> int:
    return keys.required_size("mamba_expand") * keys.required_size("hidden_size")


def build_falcon_h1(keys: ConfigKeys) -> Decoder:
    """Return a Falcon-H1, each layer of which attends and keeps a state; vLLM cannot split a tied one over stages."""
    heads = read_heads(keys)
    mixer = _mixer(keys, inner=keys.size("mamba_d_ssm") or _expanded(keys), normalises=keys.flag("mamba_rms_norm"))
    width = keys.required_size("intermediate_size")
    modules = (
        *attention(heads),
        *mixer.modules("mamba"),
        *_multipliers(mixer),
        *gated_mlp("feed_forward", heads.hidden, width),
        layer_norms(heads.hidden),
    )
    layer = Layer(modules=modules, caches=(heads.cache(), mixer.cache()))
    return assemble(
        keys,
        (layer,) * keys.required_size("num_hidden_layers"),
        width=width,
        heads=heads,
        ropes=(read_rope(keys, head_dim=heads.size, rotary_dim=keys.size("attn_rotary_emb") or heads.size),),
        supports_pp=not keys.flag("tie_word_embeddings"),
    )


def _multipliers(mixer: Mamba2) -> tuple[Tensor, Tensor]:
    """What scales the projection in, element by element."""
    once, grouped = 2 * mixer.inner + mixer.heads, 2 * mixer.groups * mixer.state
    return (
        Tensor(name="mamba.mup_vector", elements=once, sharded=True, is_buffer=True),
        Tensor(name="mamba.mup_vector of groups", elements=grouped, units=mixer.groups, is_buffer=True),
    )


def build_granite_hybrid(keys: ConfigKeys) -> Decoder:
    """Return a Granite 4, with routed experts, a shared MLP or both in every layer."""
    heads = read_heads(keys)
    heads = replace(heads, size=heads.hidden // heads.queries)
    mixer = _mixer(keys, inner=_expanded(keys))
    feed_forward = (*_granite_feed_forward(keys, heads.hidden), layer_norms(heads.hidden))
    bias = keys.flag("attention_bias")
    attends = (*attention(heads, qkv_bias=bias, o_bias=bias), *feed_forward)
    ropes = (read_rope(keys, head_dim=heads.size),) if keys.text("position_embedding_type") == "rope" else ()
    layers = {
        FULL: Layer(modules=attends, caches=(heads.cache(),), ropes=ropes),
        LINEAR: Layer(modules=(*mixer.modules("mixer"), *feed_forward), caches=(mixer.cache(),)),
    }
    return _alternating(keys, layers, heads, ropes)


def _granite_feed_forward(keys: ConfigKeys, hidden: int) -> Iterator[Module]:
    if whole_number(keys, "num_local_experts"):
        mixture = read_mixture(keys, count="num_local_experts", width="intermediate_size")
        yield router(mixture, name="block_sparse_moe.gate")
        yield routed(mixture, name="block_sparse_moe")
    if width := whole_number(keys, "shared_intermediate_size"):
        yield column("shared_mlp.input_linear", hidden, ("input_linear", 2 * width, 2))
        yield row("shared_mlp.output_linear", width, hidden)


def build_bamba(keys: ConfigKeys) -> Decoder:
    """Return a Bamba, whose attention layers are named by their indices."""
    heads = read_heads(keys)
    mixer = _mixer(keys, inner=_expanded(keys))
    width, bias = keys.required_size("intermediate_size"), keys.flag("mlp_bias")
    feed_forward = (*gated_mlp("feed_forward", heads.hidden, width, bias=bias), layer_norms(heads.hidden))
    ropes = (read_rope(keys, head_dim=heads.size),)
    layers = {
        FULL: Layer(modules=(*attention(heads), *feed_forward), caches=(heads.cache(),), ropes=ropes),
        LINEAR: Layer(modules=(*mixer.modules("mixer"), *feed_forward), caches=(mixer.cache(),)),
    }
    return _alternating(keys, layers, heads, ropes)


def _alternating(keys: ConfigKeys, layers: Mapping[str, Layer], heads: Heads, ropes: tuple[Rope, ...]) -> Decoder:
    attending = numbers(keys, "attn_layer_indices")
    stated = layer_types(keys, lambda index: FULL if index in attending else LINEAR, name=_types_key(keys))
    kinds = require_kinds(tuple(OLDER_KINDS.get(kind, kind) for kind in stated), KINDS, name=_types_key(keys))
    return assemble(
        keys,
        [layers[kind] for kind in kinds],
        width=whole_number(keys, "shared_intermediate_size") or keys.required_size("intermediate_size"),
        heads=heads,
        ends=moved_everywhere(plain_ends(keys), "embed_tokens", "final norm", "lm_head"),
        ropes=ropes,
    )


def _types_key(keys: ConfigKeys) -> str:
    return "layers_block_type" if keys.has("layers_block_type") else "layer_types"


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "FalconH1ForCausalLM": Architecture(model_type="falcon_h1", build=build_falcon_h1, first="0.9"),
        "GraniteMoeHybridForCausalLM": Architecture(
            model_type="granitemoehybrid", build=build_granite_hybrid, first="0.9"
        ),
        "BambaForCausalLM": Architecture(model_type="bamba", build=build_bamba, last="0.23", checked=False),
    }
)
