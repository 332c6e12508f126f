"""MiniMax M3's tower: CLIP's shape with rotary positions in three dimensions.

Source: vLLM 0.32 `vllm.models.minimax_m3.common.vision_tower`.
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
    layer_norm,
    merged_qkv,
    tower_keys,
    up,
)

DIMENSIONS = 3
PREFIX = "vision_tower"


def minimax_m3(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return the tower, its projector and the merger of four patches."""
    vision = tower_keys(keys, "vision_config", "clip_vision_model")
    tower = Tower(
        modality="image",
        modules=(*_vit(vision), *_projectors(keys, vision, decoder.hidden_size)),
        hidden_size=vision.required_size("hidden_size"),
        intermediate_size=vision.required_size("intermediate_size"),
        num_heads=vision.required_size("num_attention_heads"),
        whole_since="0.24",
    )
    return (tower,)


def _compression(vision: ConfigKeys, name: str) -> int:
    stated = vision.mapping("img_token_compression_config") or {}
    return ConfigKeys(stated, {}, {name: 2}).required_size(name)


def _vit(vision: ConfigKeys) -> Iterator[Module]:
    width, intermediate = vision.required_size("hidden_size"), vision.required_size("intermediate_size")
    head_dim = width // vision.required_size("num_attention_heads")
    prefix = f"{PREFIX}.vision_model"

    def block(name: str) -> Iterator[Module]:
        yield from (layer_norm(f"{name}.layer_norm1", width), layer_norm(f"{name}.layer_norm2", width))
        yield merged_qkv(f"{name}.self_attn.qkv_proj", width, width)
        yield down(f"{name}.self_attn.out_proj", width, width)
        yield from (up(f"{name}.fc1", width, intermediate), down(f"{name}.fc2", intermediate, width))

    kernel = _compression(vision, "temporal_patch_size") * vision.required_size("patch_size") ** 2
    channels = vision.required_size("num_channels")
    yield convolution(f"{prefix}.embeddings.patch_embedding", channels, width, kernel, bias=False)
    yield layer_norm(f"{prefix}.pre_layrnorm", width)
    yield from blocks(f"{prefix}.encoder.layers", vision.required_size("num_hidden_layers"), block)
    rotated = 2 * (head_dim // 2 // DIMENSIONS)
    yield from (frequencies(f"{prefix}.inv_freq_{axis}", rotated) for axis in "thw")


def _projectors(keys: ConfigKeys, vision: ConfigKeys, outputs: int) -> Iterator[Module]:
    """Both pass through `projector_hidden_size`; their biases are the tower's own keys."""
    width, middle = vision.required_size("hidden_size"), keys.size("projector_hidden_size") or outputs
    merged = outputs * _compression(vision, "spatial_merge_size") ** 2
    for name, inputs, key in (
        ("multi_modal_projector", width, "multimodal_projector_bias"),
        ("patch_merge_mlp", merged, "patch_merge_bias"),
    ):
        bias = not vision.has(key) or vision.flag(key)
        yield up(f"{PREFIX}.{name}.linear_1", inputs, middle, bias=bias)
        yield down(f"{PREFIX}.{name}.linear_2", middle, outputs, bias=bias)


WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "MiniMaxM3SparseForConditionalGeneration": Wrapper(
            model_type="minimax_m3_vl",
            language="MiniMaxM3SparseForCausalLM",
            towers=minimax_m3,
            hf_to_vllm=(
                ("multi_modal_projector.", "vision_tower.multi_modal_projector."),
                ("patch_merge_mlp.", "vision_tower.patch_merge_mlp."),
            ),
            first="0.24",
        ),
    }
)
