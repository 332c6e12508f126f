"""Mixtral and its kin: grouped attention, and experts in every layer."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, model_window, plain_ends
from planner.core.architectures.mixture import Mixture, read_mixture, routed, router
from planner.core.architectures.query_norms import whole_norms
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Ends
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.modules import Module, column, gated_mlp, kv_scales, qkv, row
from planner.core.rope import read_rope

SPARSE = "block_sparse_moe"
GROK_LAST = "0.24"
DBRX_NAMES = {
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "max_position_embeddings": "max_seq_len",
}


def build_mixtral(keys: ConfigKeys) -> Decoder:
    """Return a Mixtral; source: vLLM `models.mixtral`."""
    heads, mixture = read_heads(keys), _local_mixture(keys)
    return _uniform(keys, heads, mixture, (*attention(heads), *_experts(mixture)))


def build_phimoe(keys: ConfigKeys) -> Decoder:
    """Return a Phi mixture: biases in attention and head, norms with one; source: vLLM `models.phimoe`."""
    heads, mixture = read_heads(keys), _local_mixture(keys)
    modules = (*attention(heads, qkv_bias=True, o_bias=True), *_experts(mixture))
    ends = plain_ends(keys, norm_vectors=2, head_bias=True, tied=False)
    return _uniform(keys, heads, mixture, modules, norm_vectors=2, ends=ends)


def build_olmoe(keys: ConfigKeys) -> Decoder:
    """Return an OLMoE, whose heads are as wide as the hidden state; source: vLLM `models.olmoe`."""
    heads = replace(
        read_heads(keys), size=keys.required_size("hidden_size") // keys.required_size("num_attention_heads")
    )
    mixture = read_mixture(keys, width="intermediate_size")
    modules = (*attention(heads), *whole_norms(heads), router(mixture), routed(mixture))
    return _uniform(keys, heads, mixture, modules, ends=plain_ends(keys, tied=False))


def build_granitemoe(keys: ConfigKeys) -> Decoder:
    """Return a Granite mixture, with a shared MLP where the config states one.

    Source: vLLM `models.granitemoe`, `models.granitemoeshared`.
    """
    heads = read_heads(keys)
    heads = replace(heads, size=heads.hidden // heads.queries)
    mixture = _local_mixture(keys, shared_width="shared_intermediate_size")
    return _uniform(keys, heads, mixture, (*attention(heads), *_experts(mixture), *_shared_mlp(mixture)))


def build_grok(keys: ConfigKeys) -> Decoder:
    """Return a Grok 1 or 2: four norms a layer, an MLP beside the experts if `residual_moe`.

    Source: vLLM `models.grok1` (0.24, the last release that has it).
    """
    heads = read_heads(keys)
    width = "moe_intermediate_size" if keys.has("moe_intermediate_size") else "intermediate_size"
    count = "num_experts" if keys.has("num_experts") else "num_local_experts"
    mixture = read_mixture(keys, count=count, width=width)
    modules = (
        *attention(heads, "attn"),
        router(mixture, name="moe_block.gate"),
        routed(mixture, name="moe_block"),
        *(_dense_beside(keys) if keys.flag("residual_moe") else ()),
        layer_norms(heads.hidden),
    )
    return _uniform(keys, heads, mixture, modules)


def _dense_beside(keys: ConfigKeys) -> tuple[Module, ...]:
    return gated_mlp("mlp", keys.required_size("hidden_size"), keys.required_size("intermediate_size"))


def build_dbrx(keys: ConfigKeys) -> Decoder:
    """Return a DBRX, which states heads and experts in objects of their own; source: vLLM `models.dbrx`."""
    inner = _inner(keys, "attn_config"), _inner(keys, "ffn_config")
    hidden, queries = keys.required_size("hidden_size"), keys.required_size("num_attention_heads")
    heads = Heads(hidden=hidden, queries=queries, kv=inner[0].required_size("kv_n_heads"), size=hidden // queries)
    mixture = Mixture(
        hidden_size=hidden,
        count=inner[1].required_size("moe_num_experts"),
        top_k=inner[1].required_size("moe_top_k"),
        width=inner[1].required_size("ffn_hidden_size"),
    )
    name = "norm_attn_norm.attn"
    modules = (
        qkv(f"{name}.Wqkv", hidden=hidden, heads=queries, kv_heads=heads.kv, head_dim=heads.size),
        row(f"{name}.out_proj", hidden, hidden),
        kv_scales(f"{name}.attn"),
        router(mixture, name="ffn.router.layer"),
        replace(routed(mixture), name="ffn"),
    )
    ends = plain_ends(keys, embedding="wte", tied=False)
    return replace(_uniform(keys, heads, mixture, modules, ends=ends), layer_prefix="transformer.blocks")


def _local_mixture(keys: ConfigKeys, *, shared_width: str = "") -> Mixture:
    return read_mixture(keys, count="num_local_experts", width="intermediate_size", shared_width=shared_width)


def _experts(mixture: Mixture) -> tuple[Module, ...]:
    return router(mixture, name=f"{SPARSE}.gate"), routed(mixture, name=SPARSE)


def _shared_mlp(mixture: Mixture) -> tuple[Module, ...]:
    if not mixture.shared_width:
        return ()
    hidden, width = mixture.hidden_size, mixture.shared_width
    up = column("shared_mlp.input_linear", hidden, ("input_linear", 2 * width))
    return up, row("shared_mlp.output_linear", width, hidden)


def _inner(keys: ConfigKeys, name: str) -> ConfigKeys:
    default = keys.defaults.get(name)
    return ConfigKeys(keys.mapping(name) or {}, {}, default if isinstance(default, Mapping) else {})


def _uniform(
    keys: ConfigKeys,
    heads: Heads,
    mixture: Mixture,
    modules: Iterable[Module],
    *,
    norm_vectors: int = 1,
    ends: Ends | None = None,
) -> Decoder:
    """A decoder of equal layers that vLLM builds with both ends on every stage."""
    layer = layer_of((*modules, layer_norms(heads.hidden, 2 * norm_vectors)), heads.cache(window=model_window(keys)))
    return assemble(
        keys,
        (layer,) * keys.required_size("num_hidden_layers"),
        width=mixture.width,
        heads=heads,
        ends=ends or plain_ends(keys),
        ties=ends is None,
        ropes=(read_rope(keys, head_dim=heads.size),),
        everywhere=True,
    )


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "MixtralForCausalLM": Architecture(model_type="mixtral", build=build_mixtral),
        "PhiMoEForCausalLM": Architecture(model_type="phimoe", build=build_phimoe),
        "OlmoeForCausalLM": Architecture(model_type="olmoe", build=build_olmoe),
        "GraniteMoeForCausalLM": Architecture(model_type="granitemoe", build=build_granitemoe),
        "GraniteMoeSharedForCausalLM": Architecture(model_type="granitemoeshared", build=build_granitemoe),
        "Grok1ForCausalLM": Architecture(
            model_type="grok-2", build=build_grok, first="0.14", last=GROK_LAST, checked=False
        ),
        "Grok1ModelForCausalLM": Architecture(model_type="grok-1", build=build_grok, last=GROK_LAST, checked=False),
        "DbrxForCausalLM": Architecture(model_type="dbrx", build=build_dbrx, names=DBRX_NAMES),
    }
)
