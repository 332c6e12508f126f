"""Gemma 3n's towers: a MobileNet of the timm package sees, a conformer hears; both are whole on every rank.

Source: vLLM 0.32 `models.gemma3n_mm`, transformers 5.19 `models.gemma3n`, timm 1.0.31 `models.mobilenetv5`.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType

from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Tower
from planner.core.modules import Module, Table, Tensor
from planner.core.tower import Wrapper, blocks, down, numbers, rms_norm, tower_keys

TIMM_PARAMETERS: Mapping[str, int] = MappingProxyType({"mobilenetv5_300m_enc": 294_126_912})
ARCHITECTURE_KEY = "architecture"


def gemma3n(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return what it sees with and what it hears with."""
    return (_seeing(keys, decoder), _hearing(keys, decoder))


def _seeing(keys: ConfigKeys, decoder: Decoder) -> Tower:
    """A MobileNet that is not known by its name can only be left out."""
    vision = tower_keys(keys, "vision_config", "gemma3n_vision")
    parameters = TIMM_PARAMETERS.get(vision.text(ARCHITECTURE_KEY) or "")
    return Tower(
        modality="image",
        modules=(
            Tensor(name="vision_tower.timm_model", elements=parameters or 0),
            *_embedder("embed_vision", vision, decoder),
        ),
        limited_by=("image",),
        max_tokens_per_item=keys.size("vision_soft_tokens_per_image"),
        hidden_size=vision.required_size("hidden_size"),
        underived="" if parameters else f"vision_config.{ARCHITECTURE_KEY}",
    )


def _hearing(keys: ConfigKeys, decoder: Decoder) -> Tower:
    audio = tower_keys(keys, "audio_config", "gemma3n_audio")
    width = audio.required_size("hidden_size")
    return Tower(
        modality="audio",
        modules=(*_conformer("audio_tower", audio), *_embedder("embed_audio", audio, decoder)),
        limited_by=("audio",),
        max_tokens_per_item=keys.size("audio_soft_tokens_per_image"),
        hidden_size=width,
        intermediate_size=4 * width,
    )


def _embedder(prefix: str, tower: ConfigKeys, decoder: Decoder) -> Iterator[Module]:
    """A table for the modality's own tokens, two norms, and a projection whose input TP divides."""
    width = tower.required_size("hidden_size")
    yield Table(name=f"{prefix}.embedding", rows=tower.required_size("vocab_size"), width=width)
    yield from (rms_norm(f"{prefix}.hard_embedding_norm", width), rms_norm(f"{prefix}.soft_embedding_norm", width))
    yield down(f"{prefix}.embedding_projection", width, decoder.hidden_size, bias=False, may_quantise=False)


def _conformer(prefix: str, audio: ConfigKeys) -> Iterator[Module]:
    """Two convolutions halve time and frequency; each layer feeds forward, attends, convolves and feeds forward."""
    width, layers = audio.required_size("hidden_size"), audio.required_size("conf_num_hidden_layers")
    channels = numbers(audio, "sscp_conv_channel_size")
    bins, inputs = audio.required_size("input_feat_size"), 1
    for index, (outputs, kernel) in enumerate(zip(channels, _kernels(audio), strict=True)):
        yield Tensor(name=f"{prefix}.conv_{index}", elements=outputs * (inputs * kernel + 1))
        bins, inputs = bins // 2, outputs
    yield Tensor(name=f"{prefix}.input_proj_linear", elements=width * bins * inputs)
    yield from blocks(f"{prefix}.conformer", layers, partial(_layer, audio=audio, width=width))


def _kernels(audio: ConfigKeys) -> list[int]:
    stated = audio.value("sscp_conv_kernel_size")
    if not isinstance(stated, list | tuple):
        raise audio.wrong("sscp_conv_kernel_size", stated, "a list of kernels")
    return [math.prod(kernel) for kernel in stated]


def _layer(name: str, *, audio: ConfigKeys, width: int) -> Iterator[Tensor]:
    head_dim = width // audio.required_size("conf_num_attention_heads")
    feeds = 2 * (2 * 4 * width * width + 2 * width)
    attention = 5 * width * width + head_dim + 2 * width
    convolution = 3 * width * width + width * audio.required_size("conf_conv_kernel_size") + 2 * width
    yield Tensor(name=name, elements=feeds + attention + convolution + width)
    chunk = audio.required_size("conf_attention_chunk_size")
    left, right = audio.required_size("conf_attention_context_left"), audio.value("conf_attention_context_right")
    context = chunk + left - 1 + (right if isinstance(right, int) else 0)
    yield Tensor(name=f"{name}.mask", elements=chunk * context, dtype="bool", is_buffer=True)
    yield Tensor(name=f"{name}.scalars", elements=6, is_buffer=True)
    yield Tensor(name=f"{name}.timescales", elements=width // 2 + 1, dtype="float32", is_buffer=True)


WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "Gemma3nForConditionalGeneration": Wrapper(
            model_type="gemma3n",
            language="Gemma3nForCausalLM",
            towers=gemma3n,
            hf_to_vllm=(
                ("model.embed_audio.", "embed_audio."),
                ("model.embed_vision.", "embed_vision."),
                ("model.language_model.", "language_model.model."),
                ("model.vision_tower.", "vision_tower."),
                ("model.audio_tower.", "audio_tower."),
                ("lm_head.", "language_model.lm_head."),
                ("model", "language_model.model"),
            ),
            first="0.9.2",
        ),
    }
)
