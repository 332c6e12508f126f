"""EAGLE-3 heads: one or a few Llama layers that read the target's hidden states beside the embedding.

Source: vLLM 0.32 `models.llama_eagle3`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.architectures import dense
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Ends, Layer
from planner.core.modules import Linear, Module, Table, Tensor
from planner.core.tower import whole

QKV = "self_attn.qkv_proj"
AUXILIARY_STATES = 3
_LLAMA = dense.ARCHITECTURES["LlamaForCausalLM"]


def build(keys: ConfigKeys) -> Decoder:
    """Return the head as a decoder that only drafts: the first layer is twice as wide at its entrance."""
    decoder = _LLAMA.build(keys)
    first, others = _layer(decoder, doubled=True), _layer(decoder, doubled=False)
    return replace(
        decoder,
        layers=(first, *(others for _ in decoder.layers[1:])),
        ends=Ends(first=decoder.ends.first, last=tuple(_outputs(keys, decoder)), every=tuple(_entrance(keys, decoder))),
        tie_word_embeddings=False,
        drafts_only=True,
    )


def _layer(decoder: Decoder, *, doubled: bool) -> Layer:
    width, layer = decoder.hidden_size, decoder.layers[0]
    modules = (_doubled(module) if doubled else module for module in layer.modules)
    return replace(layer, modules=(*modules, Tensor(name="hidden_norm", elements=width)))


def _doubled(module: Module) -> Module:
    return replace(module, inputs=2 * module.inputs) if isinstance(module, Linear) and module.name == QKV else module


def _eagle_config(keys: ConfigKeys, name: str) -> object:
    inside = keys.mapping("eagle_config") or {}
    return inside.get(name, keys.value(name))


def _entrance(keys: ConfigKeys, decoder: Decoder) -> Iterator[Module]:
    """The target's states of several layers are joined and projected, unless the head takes only its last."""
    if _eagle_config(keys, "use_aux_hidden_state") is False:
        return
    states, layers = keys.size("num_aux_hidden_states"), _eagle_config(keys, "eagle_aux_hidden_state_layer_ids")
    count = states or (len(layers) if isinstance(layers, list) and layers else AUXILIARY_STATES)
    inputs = count * (keys.size("target_hidden_size") or decoder.hidden_size)
    if _eagle_config(keys, "norm_before_fc"):
        yield Tensor(name="input_norm", elements=inputs)
    if keys.flag("fc_norm"):
        yield Tensor(name="fc_norm", elements=inputs)
    yield whole("fc", inputs, decoder.hidden_size, bias=False)


def _outputs(keys: ConfigKeys, decoder: Decoder) -> Iterator[Module]:
    """The head's vocabulary may be a part of the target's: then it keeps where each of its tokens stands there."""
    rows = keys.size("draft_vocab_size") or decoder.vocab_size
    yield Tensor(name="final norm", elements=decoder.hidden_size)
    yield Table(name="lm_head", rows=rows, width=decoder.hidden_size)
    if rows != decoder.vocab_size:
        yield Tensor(name="draft_id_to_target_id", elements=rows, dtype="int64")


_EAGLE3 = Architecture(model_type="llama", build=build)

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"LlamaForCausalLMEagle3": _EAGLE3, "Eagle3LlamaForCausalLM": _EAGLE3}
)
