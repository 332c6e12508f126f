"""Llama-Nemotron from architecture search: each block states its own KV heads and MLP width, or that it has none.

Source: vLLM 0.32 `models.nemotron_nas`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble
from planner.core.config_keys import ConfigKeys, finite
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.errors import BadInput
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.modules import Module, gated_mlp, norm
from planner.core.rope import read_rope
from planner.core.units import round_up

WIDTH_MULTIPLE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What one block holds: its KV heads and the width of its MLP, None for a part that it skips."""

    kv_heads: int | None
    width: int | None


def build(keys: ConfigKeys) -> Decoder:
    """Return the decoder; blocks that hold the same are the same layer."""
    blocks = _blocks(keys)
    held = [block.kv_heads for block in blocks if block.kv_heads is not None]
    heads = replace(_read_heads(keys), kv=max(held, default=1))
    layers = {block: _layer(keys, heads, block) for block in dict.fromkeys(blocks)}
    return assemble(
        keys,
        [layers[block] for block in blocks],
        width=max((block.width for block in blocks if block.width is not None), default=heads.hidden),
        heads=heads,
        ropes=(read_rope(keys, head_dim=heads.size),),
    )


def _read_heads(keys: ConfigKeys) -> Heads:
    return read_heads(ConfigKeys({**keys.config, "num_key_value_heads": None}, keys.names, keys.defaults))


def _layer(keys: ConfigKeys, heads: Heads, block: Block) -> Layer:
    own = replace(heads, kv=block.kv_heads) if block.kv_heads is not None else None
    modules = (*(_attention(keys, own) if own is not None else ()), *_mlp(keys, heads.hidden, block.width))
    return Layer(modules=modules, caches=() if own is None else (own.cache(),))


def _attention(keys: ConfigKeys, heads: Heads) -> Iterator[Module]:
    bias = keys.any_flag("attention_bias|bias")
    qkv_bias = keys.flag("qkv_bias") if keys.has("qkv_bias") else bias
    yield from attention(heads, qkv_bias=qkv_bias, o_bias=bias)
    yield norm("input_layernorm", heads.hidden)


def _mlp(keys: ConfigKeys, hidden: int, width: int | None) -> Iterator[Module]:
    if width is not None:
        yield from gated_mlp("mlp", hidden, width, bias=keys.flag("mlp_bias"))
        yield norm("post_attention_layernorm", hidden)


def _blocks(keys: ConfigKeys) -> list[Block]:
    stated, layers = keys.value("block_configs"), keys.required_size("num_hidden_layers")
    if not isinstance(stated, Sequence) or isinstance(stated, str) or len(stated) < layers:
        raise keys.wrong("block_configs", stated, f"a list of {layers} blocks")
    return [_block(keys, stated[index], index) for index in range(layers)]


def _block(keys: ConfigKeys, stated: object, index: int) -> Block:
    parts = stated if isinstance(stated, Mapping) else {}
    attends, forwards = parts.get("attention"), parts.get("ffn")
    if not isinstance(attends, Mapping) or not isinstance(forwards, Mapping):
        raise keys.wrong(f"block_configs[{index}]", stated, "an object with attention and ffn")
    return Block(kv_heads=_kv_heads(keys, attends, index), width=_width(keys, forwards, index))


def _kv_heads(keys: ConfigKeys, attends: Mapping[str, object], index: int) -> int | None:
    if attends.get("replace_with_linear"):
        raise _impossible(index, "attention.replace_with_linear")
    if attends.get("no_op"):
        return None
    group = finite(f"block_configs[{index}].attention.n_heads_in_group", attends.get("n_heads_in_group"))
    heads = keys.required_size("num_attention_heads")
    if group < 1 or heads % int(group):
        raise _impossible(index, "attention.n_heads_in_group")
    return heads // int(group)


def _width(keys: ConfigKeys, forwards: Mapping[str, object], index: int) -> int | None:
    """A multiple of the hidden size, as DeciLM rounds it, or a width."""
    if forwards.get("replace_with_linear"):
        raise _impossible(index, "ffn.replace_with_linear")
    if forwards.get("no_op"):
        return None
    multiple = forwards.get("ffn_mult")
    if multiple is None:
        return int(finite(f"block_configs[{index}].ffn.intermediate_size", forwards.get("intermediate_size")))
    hidden = keys.required_size("hidden_size")
    return round_up(int(2 * finite(f"block_configs[{index}].ffn.ffn_mult", multiple) * hidden / 3), WIDTH_MULTIPLE)


def _impossible(index: int, part: str) -> BadInput:
    return BadInput(
        field=f"block_configs[{index}].{part}",
        message=f"vLLM cannot build block {index} with this {part}.",
        fix="correct block_configs in config.json",
    )


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"DeciLMForCausalLM": Architecture(model_type="nemotron-nas", build=build)}
)
