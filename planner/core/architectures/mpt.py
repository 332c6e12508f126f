"""MPT: ALiBi, one table for embedding and head, no biases where the config says so."""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, plain_ends
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder
from planner.core.grouped_attention import Heads
from planner.core.model_scope import unknown
from planner.core.modules import column, kv_scales, qkv, row

NAMES = {
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "max_position_embeddings": "max_seq_len",
}
EXPANSION = 4
LAST = "0.28"


def build_mpt(keys: ConfigKeys) -> Decoder:
    """Return an MPT; source: vLLM `models.mpt` (0.28, the last release that has it)."""
    inner = ConfigKeys(keys.mapping("attn_config") or {}, {}, {})
    if inner.flag("qk_ln"):
        raise unknown("qk_ln", "norms of queries and keys are not planned yet for this family.")
    hidden, queries = keys.required_size("hidden_size"), keys.required_size("num_attention_heads")
    heads = Heads(hidden=hidden, queries=queries, kv=inner.size("kv_n_heads") or queries, size=hidden // queries)
    width, bias = (keys.size("expansion_ratio") or EXPANSION) * hidden, not keys.flag("no_bias")
    modules = (
        qkv("attn.Wqkv", hidden=hidden, heads=queries, kv_heads=heads.kv, head_dim=heads.size, bias=bias),
        row("attn.out_proj", hidden, hidden, bias=bias),
        kv_scales("attn.attn"),
        column("ffn.up_proj", hidden, ("up_proj", width), bias=bias),
        row("ffn.down_proj", width, hidden, bias=bias),
        layer_norms(hidden, 2 * (1 + int(bias))),
    )
    return assemble(
        keys,
        (layer_of(modules, heads.cache()),) * keys.required_size("num_hidden_layers"),
        width=width,
        heads=heads,
        ends=plain_ends(keys, embedding="wte", norm_vectors=1 + int(bias), tied=True),
        everywhere=True,
    )


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        name: Architecture(model_type="mpt", build=build_mpt, names=NAMES, last=LAST, checked=False)
        for name in ("MptForCausalLM", "MPTForCausalLM")
    }
)
