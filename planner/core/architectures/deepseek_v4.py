"""DeepSeek V4: a window and a compressed cache a layer, residuals in several streams, experts in every layer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, plain_ends
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
from planner.core.cache_layer import CompressedCache
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Ends, Layer
from planner.core.errors import BadInput
from planner.core.grouped_attention import Heads
from planner.core.model_scope import unknown
from planner.core.modules import Linear, Module, Shard, Split, Tensor, column, norm, replicated, row
from planner.core.rope import Rope, read_rope, stated_scaling
from planner.core.units import round_up

INDEXED_RATIO = 4
RATIOS = frozenset({1, INDEXED_RATIO, 128})
KERNEL_HEADS = 64
INT32 = "int32"


def build_deepseek_v4(keys: ConfigKeys) -> Decoder:
    """Return a DeepSeek V4; source: vLLM `models.deepseek_v4`."""
    if whole_number(keys, "vision_n_layers"):
        raise unknown("vision_n_layers", "a DeepSeek V4 with a vision tower is not planned yet.")
    heads = _heads(keys)
    hashed = whole_number(keys, "num_hash_layers")
    kinds = [(ratio, place < hashed) for place, ratio in enumerate(_ratios(keys))]
    kept = {kind: _layer(keys, heads, kind[0], hashed=kind[1]) for kind in set(kinds)}
    layers = [kept[kind] for kind in kinds]
    return assemble(
        keys,
        layers,
        width=keys.required_size("moe_intermediate_size"),
        heads=heads,
        ends=_ends(keys),
        ropes=tuple(rope for layer in layers for rope in layer.ropes),
        ties=False,
    )


def _heads(keys: ConfigKeys) -> Heads:
    queries = keys.required_size("num_attention_heads")
    return Heads(hidden=keys.required_size("hidden_size"), queries=queries, kv=1, size=keys.required_size("head_dim"))


def _ratios(keys: ConfigKeys) -> Iterator[int]:
    """How many tokens share a state, layer by layer; 0 and 1 compress nothing."""
    stated, layers = keys.value("compress_ratios"), keys.required_size("num_hidden_layers")
    if stated is None:
        raise unknown("compress_ratios", "which layers compress how many tokens is not stated.")
    if not isinstance(stated, Sequence) or isinstance(stated, str) or len(stated) < layers:
        message = f"compress_ratios must be a list with a number for each of the {layers} layers."
        raise BadInput(field="compress_ratios", message=message, fix="give it as the checkpoint's config.json has it")
    for ratio in stated[:layers]:
        if max(1, ratio) not in RATIOS:
            raise unknown("compress_ratios", f"a layer that compresses {ratio} tokens to one is not planned yet.")
        yield max(1, ratio)


def _layer(keys: ConfigKeys, heads: Heads, ratio: int, *, hashed: bool) -> Layer:
    modules = (
        *_attention(keys, heads),
        *(_compressor("attn.compressor", heads.hidden, heads.size, ratio) if ratio > 1 else ()),
        *(_indexer(keys, heads, ratio) if ratio == INDEXED_RATIO else ()),
        *_experts(keys, hashed=hashed),
        *_streams(keys, heads.hidden),
        layer_norms(heads.hidden),
    )
    cache = CompressedCache(
        num_heads=heads.queries,
        head_dim=heads.size,
        rope_head_dim=keys.required_size("qk_rope_head_dim"),
        ratio=ratio,
        window=keys.required_size("sliding_window"),
        index_head_dim=keys.required_size("index_head_dim") if ratio == INDEXED_RATIO else None,
    )
    return layer_of(modules, cache, ropes=(_rope(keys, ratio),))


def _attention(keys: ConfigKeys, heads: Heads) -> Iterator[Module]:
    """One key and value of a head's size for all heads; the way out goes through groups.

    The sinks are padded to the 64 or 128 heads that the kernel takes, on every rank.
    """
    rank, groups = keys.required_size("q_lora_rank"), keys.required_size("o_groups")
    width = groups * keys.required_size("o_lora_rank")
    shards = (Shard(name="wq_a", outputs=rank), Shard(name="wkv", outputs=heads.size))
    yield Linear(name="attn.fused_wqa_wkv", inputs=heads.hidden, shards=shards, split=Split.REPLICATED)
    yield norm("attn.q_norm", rank)
    yield column("attn.wq_b", rank, ("wq_b", heads.width))
    yield norm("attn.kv_norm", heads.size)
    yield column("attn.wo_a", heads.width // groups, ("wo_a", width))
    yield row("attn.wo_b", width, heads.hidden)
    padded = round_up(heads.queries, KERNEL_HEADS)
    yield Tensor(name="attn.attn_sink", elements=padded, units=padded // KERNEL_HEADS, dtype=FLOAT32)


def _compressor(name: str, hidden: int, size: int, ratio: int) -> Iterator[Module]:
    """Overlapping windows where four tokens share a state, so twice as wide."""
    width = size * (2 if ratio == INDEXED_RATIO else 1)
    yield Tensor(name=f"{name}.ape", elements=ratio * width, dtype=FLOAT32)
    yield Linear(
        name=f"{name}.fused_wkv_wgate",
        inputs=hidden,
        shards=(Shard(name="wkv", outputs=width), Shard(name="wgate", outputs=width)),
        split=Split.REPLICATED,
        may_quantise=False,
    )
    yield norm(f"{name}.norm", size)


def _indexer(keys: ConfigKeys, heads: Heads, ratio: int) -> Iterator[Module]:
    count, size = keys.required_size("index_n_heads"), keys.required_size("index_head_dim")
    yield replicated("attn.indexer.wq_b", keys.required_size("q_lora_rank"), count * size)
    yield replicated("attn.indexer.weights_proj", heads.hidden, count, may_quantise=False)
    yield from _compressor("attn.indexer.compressor", heads.hidden, size, ratio)


def _experts(keys: ConfigKeys, *, hashed: bool) -> Iterator[Module]:
    """The first layers choose by a table over the vocabulary, the others by scores."""
    mixture: Mixture = read_mixture(keys, count="n_routed_experts", shared="n_shared_experts")
    yield router(mixture, name="ffn.gate")
    if hashed:
        rows = keys.required_size("vocab_size")
        yield Tensor(name="ffn.gate.tid2eid", elements=rows * mixture.top_k, dtype=INT32)
    elif keys.text("topk_method") == "noaux_tc":
        yield selection_bias(mixture.count, name="ffn.gate.e_score_correction_bias")
    yield from shared_experts(mixture, name="ffn.shared_experts")
    yield routed(mixture, name="ffn")


def _streams(keys: ConfigKeys, hidden: int) -> Iterator[Module]:
    """What mixes the residual streams before attention and before the experts (mHC)."""
    streams = keys.required_size("hc_mult")
    mixes = (2 + streams) * streams
    elements = 2 * (mixes * streams * hidden + mixes + 3)
    yield Tensor(name="hyper-connections", elements=elements, dtype=FLOAT32)


def _ends(keys: ConfigKeys) -> Ends:
    streams, hidden = keys.required_size("hc_mult"), keys.required_size("hidden_size")
    elements = streams * streams * hidden + streams + 1
    head = Tensor(name="hyper-connections", elements=elements, dtype=FLOAT32)
    return replace(plain_ends(keys, tied=False), every=(head,))


def _rope(keys: ConfigKeys, ratio: int) -> Rope:
    """Layers that compress nothing rotate plainly; the others by the stated scaling and a base of their own."""
    size = keys.required_size("qk_rope_head_dim")
    scaling = _compressed_scaling(keys) if ratio > 1 else {"rope_type": "default"}
    rope = read_rope(keys, head_dim=size, rotary_dim=size, scaling=scaling)
    base = keys.number("compress_rope_theta" if ratio > 1 else "rope_theta") or 0.0
    return replace(rope, dtype=FLOAT32, base=base)


def _compressed_scaling(keys: ConfigKeys) -> Mapping[str, object]:
    """Newer checkpoints state it for each kind of layer."""
    nested = (keys.mapping("rope_parameters") or {}).get("compress")
    return nested if isinstance(nested, Mapping) else stated_scaling(keys)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"DeepseekV4ForCausalLM": Architecture(model_type="deepseek_v4", build=build_deepseek_v4, first="0.20")}
)
