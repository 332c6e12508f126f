"""DeepSeek V3.2 and GLM-5: latent attention to the tokens that an indexer picks."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of
from planner.core.architectures.deepseek import deepseek_mlps, is_sparse
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder
from planner.core.grouped_attention import Heads
from planner.core.latent_attention import Latent, latent_attention, read_latent
from planner.core.modules import Linear, Module, Shard, Split, Tensor, replicated
from planner.core.rope import Rope, read_rope

INDEX_BASE = 1.0
SKIP_OFFSET = 2
SHARED = "S"


def build_sparse_latent(keys: ConfigKeys) -> Decoder:
    """Return a DeepSeek V3.2 or a GLM-5, some of whose layers may use the index of an earlier one.

    Source: vLLM `models.deepseek_v32`, `models.deepseek_v2.DeepseekV2MLAAttention`.
    """
    latent = read_latent(keys)
    mlps = deepseek_mlps(keys, router_dtype=None, chooses_by_bias=keys.text("topk_method") == "noaux_tc")
    attention = (*latent_attention(latent), layer_norms(latent.hidden))
    indexer, index_size = tuple(_indexer(keys, latent)), keys.required_size("index_head_dim")
    ropes = _ropes(keys, latent)
    layers = {
        (shares, sparse): layer_of(
            (*attention, *(() if shares else indexer), *mlps[sparse]),
            latent.cache(index_head_dim=index_size, shares_index=shares),
            ropes=ropes[:1] if shares else ropes,
        )
        for shares in (False, True)
        for sparse in (False, True)
    }
    places = range(keys.required_size("num_hidden_layers"))
    return assemble(
        keys,
        (layers[_shares_index(keys, place), is_sparse(keys, place)] for place in places),
        width=keys.required_size("intermediate_size"),
        heads=Heads(hidden=latent.hidden, queries=latent.heads, kv=1, size=latent.kv_rank + latent.rope),
        ropes=ropes,
        ties=False,
    )


def _indexer(keys: ConfigKeys, latent: Latent) -> Iterator[Module]:
    heads, size = keys.required_size("index_n_heads"), keys.required_size("index_head_dim")
    rank = keys.required_size("q_lora_rank")
    name = "self_attn.indexer"
    yield replicated(f"{name}.wq_b", rank, heads * size)
    yield Linear(
        name=f"{name}.wk_weights_proj",
        inputs=latent.hidden,
        shards=(Shard(name="wk", outputs=size), Shard(name="weights_proj", outputs=heads)),
        split=Split.REPLICATED,
        may_quantise=False,
    )
    yield Tensor(name=f"{name}.k_norm", elements=2 * size, dtype="float32")


def _ropes(keys: ConfigKeys, latent: Latent) -> tuple[Rope, ...]:
    """The indexer rotates by halves, unlike the attention, where the config doesn't interleave it too."""
    rope = read_rope(keys, head_dim=latent.rope)
    return (rope,) if keys.flag("indexer_rope_interleave") else (rope, replace(rope, base=INDEX_BASE))


def _shares_index(keys: ConfigKeys, layer: int) -> bool:
    pattern = keys.value("index_topk_pattern")
    if pattern is None:
        offset = keys.size("index_skip_topk_offset") or SKIP_OFFSET
        return max(layer - offset + 1, 0) % (keys.size("index_topk_freq") or 1) != 0
    if not isinstance(pattern, str | list | tuple):
        raise keys.wrong("index_topk_pattern", pattern, "a letter for each layer")
    return layer < len(pattern) and pattern[layer] == SHARED


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "DeepseekV32ForCausalLM": Architecture(model_type="deepseek_v32", build=build_sparse_latent, first="0.11"),
        "GlmMoeDsaForCausalLM": Architecture(model_type="glm_moe_dsa", build=build_sparse_latent, first="0.16"),
    }
)
