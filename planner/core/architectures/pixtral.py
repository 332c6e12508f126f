"""Mistral's models that see, from checkpoints in Hugging Face's format: a Pixtral tower beside a Mistral.

Source: vLLM 0.32 `models.mistral3`, `models.pixtral.PixtralHFVisionModel`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Tower
from planner.core.modules import Module
from planner.core.tower import (
    Wrapper,
    blocks,
    convolution,
    down,
    frequencies,
    gate_and_up,
    merged_qkv,
    numbers,
    rms_norm,
    tower_keys,
    up,
    whole,
)


def pixtral(prefix: str, vision: ConfigKeys, layers: int) -> Iterator[Module]:
    """Return a Pixtral tower of `layers` layers."""
    width, intermediate = vision.required_size("hidden_size"), vision.required_size("intermediate_size")
    head_dim = width // vision.required_size("num_attention_heads")

    def block(name: str) -> Iterator[Module]:
        yield rms_norm(f"{name}.attention_norm", width)
        yield merged_qkv(f"{name}.attention.qkv_proj", width, width, bias=False)
        yield down(f"{name}.attention.o_proj", width, width, bias=False)
        yield gate_and_up(f"{name}.feed_forward.gate_up_proj", width, intermediate)
        yield down(f"{name}.feed_forward.down_proj", intermediate, width, bias=False)
        yield rms_norm(f"{name}.ffn_norm", width)

    kernel, channels = vision.required_size("patch_size") ** 2, vision.required_size("num_channels")
    yield convolution(f"{prefix}.patch_conv", channels, width, kernel, bias=False)
    yield rms_norm(f"{prefix}.ln_pre", width)
    yield from blocks(f"{prefix}.transformer.layers", layers, block)
    yield frequencies(f"{prefix}.patch_positional_embedding", head_dim, copies=2)


def feature_depth(keys: ConfigKeys, depth: int, *, default: int) -> int:
    """Return how many layers are built: up to the deepest whose features are used (negative: from the end)."""
    wanted = numbers(keys, "vision_feature_layer") or (default,)
    return max(depth + layer + 1 if layer < 0 else layer for layer in wanted)


def mistral3(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return a Pixtral tower, cut after the layer whose features are used, and its projector."""
    vision = tower_keys(keys, "vision_config", "pixtral")
    depth = feature_depth(keys, vision.required_size("num_hidden_layers"), default=-1)
    width, merge = vision.required_size("hidden_size"), keys.size("spatial_merge_size") or 2
    bias = keys.flag("multimodal_projector_bias")
    projector = (
        rms_norm("multi_modal_projector.norm", width),
        whole(
            "multi_modal_projector.patch_merger.merging_layer", width * merge**2, width, bias=False, may_quantise=False
        ),
        up("multi_modal_projector.linear_1", width, decoder.hidden_size, bias=bias),
        down("multi_modal_projector.linear_2", decoder.hidden_size, decoder.hidden_size, bias=bias),
    )
    tower = Tower(
        modality="image",
        limited_by=("image",),
        modules=(*pixtral("vision_tower", vision, depth), *projector),
        max_tokens_per_item=_tokens(vision, merge),
        hidden_size=width,
        intermediate_size=vision.required_size("intermediate_size"),
        num_heads=vision.required_size("num_attention_heads"),
    )
    return (tower,)


def _tokens(vision: ConfigKeys, merge: int) -> int:
    """A square of the tower's largest side: a token for each merged patch and one for each row's end."""
    side: int = (vision.required_size("image_size") - 1) // (vision.required_size("patch_size") * merge) + 1
    return (side + 1) * side


WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "Mistral3ForConditionalGeneration": Wrapper(
            model_type="mistral3",
            language="MistralForCausalLM",
            languages={
                "mistral": "MistralForCausalLM",
                "ministral3": "Ministral3ForCausalLM",
                "mistral4": "MistralLarge3ForCausalLM",
            },
            towers=mistral3,
            left_out_since="0.10.1",
            hf_to_vllm=(
                ("model.language_model.", "language_model.model."),
                ("model.vision_tower.", "vision_tower."),
                ("model.multi_modal_projector.", "multi_modal_projector."),
                ("lm_head.", "language_model.lm_head."),
                ("model.", "language_model.model."),
            ),
        ),
    }
)
