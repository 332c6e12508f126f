"""MiniMax Text 01 and M1: linear attention in most layers, experts in all."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of, plain_ends
from planner.core.architectures.mixture import FLOAT32, Mixture, read_mixture, routed, router
from planner.core.cache_layer import StateCache
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Ends
from planner.core.errors import BadInput
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.layer_types import LINEAR, texts
from planner.core.model_scope import unknown
from planner.core.modules import Module, Table, Tensor, column, row
from planner.core.rope import read_rope

SPARSE = "block_sparse_moe"
LAST = "0.23"


def build_minimax_linear(keys: ConfigKeys) -> Decoder:
    """Return a MiniMax Text 01 or M1; source: vLLM `models.minimax_text_01` (0.23, the last release that has it)."""
    if keys.value("shared_intermediate_size") not in (None, 0):
        raise unknown("shared_intermediate_size", "a shared MLP beside the experts is not planned yet here.")
    heads = read_heads(keys)
    mixture = read_mixture(keys, count="num_local_experts", width="intermediate_size")
    experts = (*_experts(mixture), layer_norms(heads.hidden))
    rope = replace(
        read_rope(keys, head_dim=heads.size, rotary_dim=keys.size("rotary_dim") or heads.size), dtype=FLOAT32
    )
    full = layer_of((*attention(heads), *experts), heads.cache(), ropes=(rope,))
    state = StateCache(kind="linear", num_heads=heads.queries, head_dim=heads.size)
    linear = layer_of((*_linear_attention(heads), *experts), state)
    return assemble(
        keys,
        (linear if is_linear else full for is_linear in _linear_layers(keys)),
        width=mixture.width,
        heads=heads,
        ends=_ends(keys),
        ropes=(rope,),
        ties=False,
    )


def _ends(keys: ConfigKeys) -> Ends:
    """The head is kept in fp32."""
    ends = plain_ends(keys, tied=False)
    *others, head = ends.last
    return replace(ends, last=(*others, replace(head, dtype=FLOAT32))) if isinstance(head, Table) else ends


def _linear_layers(keys: ConfigKeys) -> Iterator[bool]:
    """A list of 0 (linear) and 1 (full), or transformers' own names."""
    layers = keys.required_size("num_hidden_layers")
    kinds = texts(keys, "layer_types")
    stated = keys.value("attn_type_list") or ([int(kind != LINEAR) for kind in kinds] if kinds else None)
    if not isinstance(stated, list | tuple) or len(stated) < layers:
        message = f"attn_type_list must be a list with a number for each of the {layers} layers."
        raise BadInput(field="attn_type_list", message=message, fix="give it as the checkpoint's config.json has it")
    return (kind == 0 for kind in stated[:layers])


def _linear_attention(heads: Heads) -> Iterator[Module]:
    name, width = "self_attn", heads.width
    yield column(f"{name}.qkv_proj", heads.hidden, ("qkv_proj", 3 * width))
    yield column(f"{name}.output_gate", heads.hidden, ("output_gate", width))
    yield row(f"{name}.out_proj", width, heads.hidden)
    yield Tensor(name=f"{name}.norm", elements=width, sharded=True)


def _experts(mixture: Mixture) -> Iterator[Module]:
    yield router(mixture, name=f"{SPARSE}.gate", dtype=FLOAT32)
    yield routed(mixture, name=SPARSE)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "MiniMaxText01ForCausalLM": Architecture(
            model_type="minimax_text_01", build=build_minimax_linear, last=LAST, checked=False
        ),
        "MiniMaxM1ForCausalLM": Architecture(
            model_type="minimax_m1", build=build_minimax_linear, first="0.9.2", last=LAST, checked=False
        ),
    }
)
