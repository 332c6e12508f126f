"""GLM-4.5 and its kin: grouped attention, and experts beside shared ones after the first dense layers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of
from planner.core.architectures.mixture import (
    FLOAT32,
    Mixture,
    read_mixture,
    routed,
    router,
    selection_bias,
    shared_experts,
    whole_number,
)
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.modules import Module, gated_mlp
from planner.core.rope import Rope, read_rope

ERNIE_NAMES = {"moe_num_experts": "num_experts", "moe_k": "num_experts_per_tok"}


def build_glm4_moe(keys: ConfigKeys) -> Decoder:
    """Return a GLM-4.5 mixture; source: vLLM `models.glm4_moe`."""
    heads = read_heads(keys)
    modules = attention(heads, qkv_bias=keys.flag("attention_bias"), normalises=keys.flag("use_qk_norm"))
    sparse = balanced(read_mixture(keys, count="n_routed_experts", shared="n_shared_experts"))
    first = whole_number(keys, "first_k_dense_replace")
    decoder = _decoder(keys, heads, modules, sparse, [place >= first for place in _places(keys)])
    return replace(decoder, experts_on_every_stage=True)


def build_dots1(keys: ConfigKeys) -> Decoder:
    """Return a dots.llm1; source: vLLM `models.dots1` (0.23, the last release that has it)."""
    heads = read_heads(keys)
    mixture = read_mixture(keys, count="n_routed_experts", shared="n_shared_experts")
    chooses_by_bias = keys.text("topk_method") == "noaux_tc"
    sparse = balanced(mixture, dtype=None) if chooses_by_bias else unbalanced(mixture)
    first, every = whole_number(keys, "first_k_dense_replace"), keys.size("moe_layer_freq") or 1
    places = [place >= first and place % every == 0 for place in _places(keys)]
    modules = attention(heads, qkv_bias=keys.flag("attention_bias"), normalises=True)
    return _decoder(keys, heads, modules, sparse, places)


def build_ernie(keys: ConfigKeys) -> Decoder:
    """Return an ERNIE 4.5 mixture, with experts in a range of its layers; a tied one fails on pipeline stages.

    Source: vLLM `models.ernie45_moe`.
    """
    heads = read_heads(keys)
    bias = keys.flag("use_bias")
    mixture = read_mixture(keys, count="moe_num_experts", top_k="moe_k", shared="moe_num_shared_experts")
    places = _places(keys)
    start, every = whole_number(keys, "moe_layer_start_index"), keys.size("moe_layer_interval") or 1
    end = whole_number(keys, "moe_layer_end_index", len(places) - 1)
    sparse = [start <= place <= end and (place + 1) % every == 0 for place in places]
    modules = attention(heads, qkv_bias=bias)
    decoder = _decoder(keys, heads, modules, balanced(mixture), sparse, bias=bias, ties=True)
    return replace(decoder, supports_pp=not decoder.tie_word_embeddings)


def build_hunyuan_v3(keys: ConfigKeys) -> Decoder:
    """Return a Hunyuan 3; source: vLLM `models.hy_v3`."""
    heads = read_heads(keys)
    mixture = read_mixture(keys, width="expert_hidden_dim", shared="num_shared_experts")
    sparse = (
        router(mixture, dtype=FLOAT32),
        selection_bias(mixture.count, name="mlp.expert_bias"),
        *shared_experts(mixture, name="mlp.shared_mlp"),
        routed(mixture),
    )
    first = whole_number(keys, "first_k_dense_replace")
    modules = attention(heads, normalises=keys.flag("qk_norm"))
    places = [place >= first for place in _places(keys)]
    decoder = _decoder(keys, heads, modules, sparse, places, ties=True, everywhere=True)
    return replace(decoder, experts_on_every_stage=True)


def balanced(
    mixture: Mixture, *, bias: str = "mlp.gate.e_score_correction_bias", dtype: str | None = FLOAT32
) -> Iterator[Module]:
    """Yield a router (of that dtype) with the bias that balances the experts, shared and routed experts."""
    yield router(mixture, dtype=dtype)
    yield selection_bias(mixture.count, name=bias)
    yield from shared_experts(mixture)
    yield routed(mixture)


def unbalanced(mixture: Mixture) -> Iterator[Module]:
    """Yield a router, shared and routed experts."""
    yield router(mixture)
    yield from shared_experts(mixture)
    yield routed(mixture)


def _places(keys: ConfigKeys) -> range:
    return range(keys.required_size("num_hidden_layers"))


def _decoder(
    keys: ConfigKeys,
    heads: Heads,
    modules: Iterable[Module],
    sparse: Iterable[Module],
    places: Iterable[bool],
    *,
    bias: bool = False,
    ties: bool = False,
    everywhere: bool = False,
) -> Decoder:
    """A decoder whose layers differ in their MLP alone: `places` says which hold experts."""
    shared = (*modules, layer_norms(heads.hidden))
    dense = gated_mlp("mlp", heads.hidden, keys.required_size("intermediate_size"), bias=bias)
    dense_layer, sparse_layer = (layer_of((*shared, *mlp), heads.cache()) for mlp in (dense, tuple(sparse)))
    layers: Iterable[Layer] = (sparse_layer if is_sparse else dense_layer for is_sparse in places)
    return assemble(
        keys,
        layers,
        width=keys.required_size("intermediate_size"),
        heads=heads,
        ropes=(_rope(keys, heads),),
        ties=ties,
        everywhere=everywhere,
    )


def _rope(keys: ConfigKeys, heads: Heads) -> Rope:
    return read_rope(keys, head_dim=heads.size)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "Glm4MoeForCausalLM": Architecture(model_type="glm4_moe", build=build_glm4_moe, first="0.10"),
        "Dots1ForCausalLM": Architecture(
            model_type="dots1", build=build_dots1, first="0.9.2", last="0.23", checked=False
        ),
        "Ernie4_5_MoeForCausalLM": Architecture(
            model_type="ernie4_5_moe", build=build_ernie, names=ERNIE_NAMES, first="0.9.2"
        ),
        "HYV3ForCausalLM": Architecture(model_type="hy_v3", build=build_hunyuan_v3, first="0.20"),
    }
)
