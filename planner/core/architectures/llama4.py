"""Llama 4: chunks in most layers, experts in every n-th, one shared expert."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, layer_of
from planner.core.architectures.mixture import Mixture, routed, router, shared_experts, whole_number
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.grouped_attention import attention, read_heads
from planner.core.modules import Module, gated_mlp
from planner.core.rope import read_rope

FEED_FORWARD = "feed_forward"


def build_llama4(keys: ConfigKeys) -> Decoder:
    """Return the language model of a Llama 4; source: vLLM `models.llama4`."""
    heads = read_heads(keys)
    return assemble(
        keys,
        _layers(keys),
        width=keys.required_size("intermediate_size_mlp"),
        heads=heads,
        ropes=(read_rope(keys, head_dim=heads.size),),
    )


def _layers(keys: ConfigKeys) -> Iterator[Layer]:
    heads = read_heads(keys)
    shared = (*attention(heads), layer_norms(heads.hidden))
    dense = gated_mlp(FEED_FORWARD, heads.hidden, keys.required_size("intermediate_size_mlp"))
    sparse = tuple(_sparse(keys))
    every = whole_number(keys, "interleave_moe_layer_step")
    chunk, rope = keys.size("attention_chunk_size"), read_rope(keys, head_dim=heads.size)
    for place, rotates in enumerate(_rotates(keys)):
        is_sparse = every > 0 and (place + 1) % every == 0
        cache = heads.cache(window=chunk, kind="chunked_local") if rotates and chunk else heads.cache()
        yield layer_of((*shared, *(sparse if is_sparse else dense)), cache, ropes=(rope,) if rotates else ())


def _rotates(keys: ConfigKeys) -> tuple[bool, ...]:
    """Which layers rotate: as stated, else all but every n-th (`Llama4TextConfig`)."""
    layers = keys.required_size("num_hidden_layers")
    stated = keys.value("no_rope_layers") or ()
    if not isinstance(stated, Sequence) or isinstance(stated, str):
        raise keys.wrong("no_rope_layers", stated, "a list with a number for each layer")
    every = keys.size("no_rope_layer_interval") or 4
    return tuple(bool(value) for value in stated[:layers]) or tuple((place + 1) % every != 0 for place in range(layers))


def _sparse(keys: ConfigKeys) -> Iterator[Module]:
    width = keys.required_size("intermediate_size")
    mixture = Mixture(
        hidden_size=keys.required_size("hidden_size"),
        count=keys.required_size("num_local_experts"),
        top_k=keys.required_size("num_experts_per_tok"),
        width=width,
        shared_width=width,
    )
    yield router(mixture, name=f"{FEED_FORWARD}.router")
    yield from shared_experts(mixture, name=f"{FEED_FORWARD}.shared_expert")
    yield routed(mixture, name=FEED_FORWARD)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"Llama4ForCausalLM": Architecture(model_type="llama4_text", build=build_llama4, first="0.10.1")}
)
