"""What the small Gemma 4 models hear with: a conformer that vLLM takes from transformers, whole on every rank.

Source: vLLM 0.32 `models.gemma4_mm`, transformers 5.19 `models.gemma4.Gemma4AudioModel`.
"""

from collections.abc import Iterator

from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Tower
from planner.core.modules import Module, Tensor
from planner.core.tower import blocks, numbers, tower_keys, whole

PREFIX = "audio_tower"
KERNEL = 9
MEL_BINS = 128
QUANTISABLE_MULTIPLE = 64
BOUNDS = 4


def gemma4_audio(keys: ConfigKeys, decoder: Decoder) -> Tower:
    """Return the audio tower and its projection into the language model."""
    audio = tower_keys(keys, "audio_config", "gemma4_audio")
    return Tower(
        modality="audio",
        modules=tuple(_modules(audio, decoder)),
        limited_by=("audio",),
        hidden_size=audio.required_size("hidden_size"),
        intermediate_size=4 * audio.required_size("hidden_size"),
    )


def _modules(audio: ConfigKeys, decoder: Decoder) -> Iterator[Module]:
    """Two convolutions, each of which halves the bins, stand before the layers."""
    width, outputs = audio.required_size("hidden_size"), audio.required_size("output_proj_dims")
    bins, inputs = MEL_BINS, 1
    for index, channels in enumerate(numbers(audio, "subsampling_conv_channels")):
        name = f"{PREFIX}.subsample_conv_projection.layer{index}"
        yield Tensor(name=name, elements=channels * (inputs * KERNEL + 1))
        bins, inputs = bins // 2, channels
    yield _linear(f"{PREFIX}.subsample_conv_projection.input_proj_linear", bins * inputs, width)
    layers = audio.required_size("num_hidden_layers")
    yield from blocks(f"{PREFIX}.layers", layers, lambda name: _layer(name, audio))
    yield whole(f"{PREFIX}.output_proj", width, outputs, may_quantise=outputs % QUANTISABLE_MULTIPLE == 0)
    yield Tensor(name=f"{PREFIX}.rel_pos_enc", elements=width // 2, is_buffer=True)
    yield _linear("embed_audio.embedding_projection", outputs, decoder.hidden_size)


def _linear(name: str, inputs: int, outputs: int) -> Module:
    return whole(name, inputs, outputs, bias=False, may_quantise=inputs % QUANTISABLE_MULTIPLE == 0)


def _layer(name: str, audio: ConfigKeys) -> Iterator[Module]:
    width = audio.required_size("hidden_size")
    head_dim = width // audio.required_size("num_attention_heads")
    shapes = {
        "feed_forward1.ffw_layer_1": (width, 4 * width),
        "feed_forward1.ffw_layer_2": (4 * width, width),
        "feed_forward2.ffw_layer_1": (width, 4 * width),
        "feed_forward2.ffw_layer_2": (4 * width, width),
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (width, width),
        "self_attn.v_proj": (width, width),
        "self_attn.post": (width, width),
        "lconv1d.linear_start": (width, 2 * width),
        "lconv1d.linear_end": (width, width),
    }
    for linear, (inputs, outputs) in shapes.items():
        yield _linear(f"{name}.{linear}.linear", inputs, outputs)
    yield _linear(f"{name}.self_attn.relative_k_proj", width, width)
    yield Tensor(name=f"{name}.self_attn.per_dim_scale", elements=head_dim)
    yield Tensor(name=f"{name}.lconv1d.depthwise_conv1d", elements=width * audio.required_size("conv_kernel_size"))
    yield Tensor(name=f"{name}.norms", elements=9 * width)
    bounds = BOUNDS * len(shapes) if audio.flag("use_clipped_linears") else 0
    yield Tensor(name=f"{name}.scalars", elements=1 + bounds, is_buffer=True)
