"""The heads that a checkpoint brings to draft with: layers which predict the tokens after the next one.

Each is read as a decoder of its own: its layers, and what stands beside them. Embedding and head are the target's.
Source: vLLM 0.32 `SpeculativeConfig.hf_config_override`, `models.deepseek_mtp`, `models.glm4_moe_mtp`,
`models.glm4_moe_lite_mtp`, `models.mimo_mtp`, `models.qwen3_next_mtp`, `models.qwen3_5_mtp`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from planner.core.cache_layer import StateCache
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Ends, Layer
from planner.core.modules import Module, Table, Tensor
from planner.core.tower import up, whole

EMBEDDING = "embed_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """How an architecture's heads are read: the key that counts them, and what makes them of the language model."""

    count_key: str
    read: Callable[[Decoder, int], Decoder]
    default_count: int = 0


def predictor_of(architecture: str, keys: ConfigKeys, decoder: Decoder) -> Decoder | None:
    """Return the heads of a model as a decoder, None where it has none or they are not planned."""
    predictor = PREDICTORS.get(architecture)
    if predictor is None:
        return None
    stated = keys.value(predictor.count_key)
    count = predictor.default_count if stated is None else stated
    return predictor.read(decoder, count) if isinstance(count, int) and count > 0 else None


def _deepseek(
    decoder: Decoder, count: int, *, names: tuple[str, ...] = ("enorm", "hnorm", "shared_head.norm")
) -> Decoder:
    """Each head is a layer like the last, over the embedding and the hidden state, both normalised and projected."""
    width, last = decoder.hidden_size, decoder.layers[-1]
    norms = tuple(Tensor(name=name, elements=width) for name in names)
    joined = whole("eh_proj", 2 * width, width, bias=False, may_quantise=False)
    head = replace(last, modules=(*last.modules, *norms, joined))
    return _heads(decoder, (head,) * count, ())


def _mimo(decoder: Decoder, count: int) -> Decoder:
    return _deepseek(decoder, count, names=("token_layernorm", "hidden_layernorm", "final_layernorm"))


def _qwen(decoder: Decoder, count: int, *, prefix: str = "mtp.layers") -> Decoder:
    """One projection, cut over TP, stands before all heads: layers like those with full attention."""
    width = decoder.hidden_size
    beside = (
        up("fc", 2 * width, width, bias=False),
        Tensor(name="norm", elements=width),
        Tensor(name="pre_fc_norm_hidden", elements=width),
        Tensor(name="pre_fc_norm_embedding", elements=width),
    )
    heads = _heads(decoder, (_attending(decoder),) * count, beside)
    return replace(heads, layer_prefix=prefix, first_layer=0)


def _attending(decoder: Decoder) -> Layer:
    return next(
        layer
        for layer in reversed(decoder.layers)
        if layer.caches and not any(isinstance(cache, StateCache) for cache in layer.caches)
    )


def _heads(decoder: Decoder, layers: tuple[Layer, ...], beside: tuple[Module, ...]) -> Decoder:
    return replace(
        decoder,
        layers=tuple(replace(layer, ropes=()) for layer in layers),
        ends=Ends(first=tuple(_embedding(decoder.ends)), every=beside),
        towers=(),
        ropes=(),
        first_layer=len(decoder.layers),
        tie_word_embeddings=True,
        both_ends_everywhere=False,
    )


def _embedding(ends: Ends) -> Iterator[Module]:
    return (module for module in (*ends.first, *ends.every) if isinstance(module, Table) and module.name == EMBEDDING)


_DEEPSEEK = Predictor(count_key="num_nextn_predict_layers", read=_deepseek)
_QWEN3_5 = Predictor(count_key="mtp_num_hidden_layers", read=_qwen, default_count=1)

PREDICTORS: Mapping[str, Predictor] = MappingProxyType(
    {
        "DeepseekV3ForCausalLM": _DEEPSEEK,
        "DeepseekV32ForCausalLM": _DEEPSEEK,
        "GlmMoeDsaForCausalLM": _DEEPSEEK,
        "Glm4MoeForCausalLM": _DEEPSEEK,
        "Glm4MoeLiteForCausalLM": _DEEPSEEK,
        "MiMoForCausalLM": Predictor(count_key="num_nextn_predict_layers", read=_mimo),
        "Qwen3NextForCausalLM": Predictor(count_key="num_nextn_predict_layers", read=_qwen, default_count=1),
        "Qwen3_5ForCausalLM": _QWEN3_5,
        "Qwen3_5MoeForCausalLM": _QWEN3_5,
        "Qwen3_5ForConditionalGeneration": _QWEN3_5,
        "Qwen3_5MoeForConditionalGeneration": _QWEN3_5,
    }
)
