"""Latent attention elsewhere: MiniCPM3, which caches it expanded, and LongCat Flash, with two halves a layer."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of
from planner.core.architectures.mixture import FLOAT32, read_mixture, routed, router, selection_bias, whole_number
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder
from planner.core.grouped_attention import Heads
from planner.core.latent_attention import latent_attention, read_latent
from planner.core.model_scope import unknown
from planner.core.modules import Module, gated_mlp
from planner.core.rope import read_rope

LONGCAT_NAMES = {
    "num_hidden_layers": "num_layers",
    "intermediate_size": "ffn_hidden_size",
    "moe_intermediate_size": "expert_ffn_hidden_size",
}
HALVES = 2


def build_minicpm3(keys: ConfigKeys) -> Decoder:
    """Return a MiniCPM3: vLLM expands its latent and caches keys and values for each head.

    Source: vLLM `models.minicpm3`, `models.minicpm`.
    """
    latent = read_latent(keys)
    heads = Heads(hidden=latent.hidden, queries=latent.heads, kv=latent.heads, size=latent.nope + latent.rope)
    width = keys.required_size("intermediate_size")
    modules = (
        *latent_attention(latent, fused=False),
        *gated_mlp("mlp", latent.hidden, width),
        layer_norms(latent.hidden),
    )
    if keys.size("num_experts"):
        raise unknown("num_experts", "experts are not planned yet for this family.")
    return assemble(
        keys,
        (layer_of(modules, heads.cache()),) * keys.required_size("num_hidden_layers"),
        width=width,
        heads=heads,
        ropes=(read_rope(keys, head_dim=latent.rope),),
        everywhere=True,
    )


def build_longcat_flash(keys: ConfigKeys) -> Decoder:
    """Return a LongCat Flash: two attentions and two MLPs a layer, some experts do nothing.

    Source: vLLM `models.longcat_flash`.
    """
    latent = read_latent(keys)
    rope = read_rope(keys, head_dim=latent.rope)
    modules = (*_halves(keys), *_experts(keys), layer_norms(latent.hidden, 2 * HALVES))
    layer = layer_of(modules, *(latent.cache() for _ in range(HALVES)), ropes=(rope,))
    return assemble(
        keys,
        (layer,) * keys.required_size("num_hidden_layers"),
        width=keys.required_size("intermediate_size"),
        heads=Heads(hidden=latent.hidden, queries=latent.heads, kv=1, size=latent.kv_rank + latent.rope),
        ropes=(rope,),
        ties=False,
    )


def _halves(keys: ConfigKeys) -> Iterator[Module]:
    latent, width = read_latent(keys), keys.required_size("intermediate_size")
    for half in range(HALVES):
        yield from latent_attention(latent, f"self_attn.{half}")
        yield from gated_mlp(f"mlps.{half}", latent.hidden, width)


def _experts(keys: ConfigKeys) -> Iterator[Module]:
    mixture = read_mixture(keys, count="n_routed_experts", top_k="moe_topk")
    choices = mixture.count + whole_number(keys, "zero_expert_num")
    yield router(replace(mixture, count=choices), name="mlp.router.classifier", dtype=FLOAT32)
    yield selection_bias(choices, name="mlp.router.e_score_correction_bias")
    yield routed(mixture)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "MiniCPM3ForCausalLM": Architecture(model_type="minicpm3", build=build_minicpm3),
        "LongcatFlashForCausalLM": Architecture(
            model_type="longcat_flash", build=build_longcat_flash, names=LONGCAT_NAMES, first="0.11"
        ),
    }
)
