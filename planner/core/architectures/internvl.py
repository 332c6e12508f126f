"""InternVL in Hugging Face's own format (InternVL3 `-hf`, Intern-S1): a ViT whose attention every rank holds whole.

Source: vLLM 0.32 `models.interns1`, `models.interns1_vit`.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType

from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Tower
from planner.core.modules import Module, Tensor
from planner.core.tower import (
    Wrapper,
    blocks,
    convolution,
    down,
    layer_norm,
    numbers,
    rms_norm,
    table,
    tower_keys,
    up,
    whole,
)

LAYER_NORM = "layer_norm"
_plain = partial(whole, may_quantise=False)


def internvl(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return the tower and its projector over patches that are shuffled together."""
    vision = tower_keys(keys, "vision_config", "internvl_vision")
    width = vision.required_size("hidden_size")
    merged = width * round(1 / (keys.number("downsample_ratio") or 0.5)) ** 2
    projector = (
        layer_norm("multi_modal_projector.layer_norm", merged),
        _plain("multi_modal_projector.linear_1", merged, decoder.hidden_size),
        _plain("multi_modal_projector.linear_2", decoder.hidden_size, decoder.hidden_size),
    )
    tower = Tower(
        modality="image",
        modules=(*_vit(vision, width), *projector),
        hidden_size=width,
        intermediate_size=vision.required_size("intermediate_size"),
    )
    return (tower,)


def _vit(vision: ConfigKeys, width: int) -> Iterator[Module]:
    sides = zip(_pair(vision, "image_size"), _pair(vision, "patch_size"), strict=True)
    patches = math.prod(size // patch for size, patch in sides)
    kernel = math.prod(_pair(vision, "patch_size"))
    yield Tensor(name="vision_tower.embeddings.cls_token", elements=width)
    yield table("vision_tower.embeddings.position_embeddings", patches + 1, width)
    channels = vision.required_size("num_channels")
    yield convolution("vision_tower.embeddings.patch_embeddings.projection", channels, width, kernel)
    layers = vision.required_size("num_hidden_layers")
    yield from blocks("vision_tower.encoder.layer", layers, partial(_block, vision=vision, width=width))


def _pair(vision: ConfigKeys, name: str) -> tuple[int, int]:
    sizes = numbers(vision, name)
    return (sizes[0], sizes[-1])


def _block(name: str, *, vision: ConfigKeys, width: int) -> Iterator[Module]:
    intermediate, bias = vision.required_size("intermediate_size"), vision.flag("attention_bias")
    for part in ("q_proj", "k_proj", "v_proj"):
        yield _plain(f"{name}.attention.{part}", width, width, bias=bias)
    yield _plain(f"{name}.attention.projection_layer", width, width)
    if vision.flag("use_qk_norm"):
        yield from (rms_norm(f"{name}.attention.q_norm", width), rms_norm(f"{name}.attention.k_norm", width))
    yield from (up(f"{name}.mlp.fc1", width, intermediate), down(f"{name}.mlp.fc2", intermediate, width))
    norm = layer_norm if (vision.text("norm_type") or LAYER_NORM) == LAYER_NORM else rms_norm
    yield from (norm(f"{name}.layernorm_before", width), norm(f"{name}.layernorm_after", width))
    yield Tensor(name=f"{name}.lambdas", elements=2 * width)


WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "InternVLForConditionalGeneration": Wrapper(
            model_type="internvl",
            language="Qwen2ForCausalLM",
            languages={"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM"},
            towers=internvl,
            hf_to_vllm=(
                ("lm_head.", "language_model.lm_head."),
                ("model.language_model.", "language_model.model."),
                ("model.vision_tower.", "vision_tower."),
                ("model.multi_modal_projector.", "multi_modal_projector."),
            ),
            first="0.10.2",
        ),
    }
)
