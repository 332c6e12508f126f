"""Llama 4's tower.

Source: vLLM 0.32 `models.mllama4`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Tower
from planner.core.modules import Module, Tensor
from planner.core.tower import Wrapper, blocks, down, layer_norm, merged_qkv, tower_keys, up

TILES = 17


def llama4(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return the tower, which vLLM never quantises, and the projector, which is split whatever the encoder's mode."""
    vision = tower_keys(keys, "vision_config", "llama4_vision_model")
    tower = Tower(
        modality="image",
        limited_by=("image",),
        modules=tuple(_vision(vision)),
        max_tokens_per_item=_tokens(vision),
        hidden_size=vision.required_size("hidden_size"),
        intermediate_size=vision.required_size("intermediate_size"),
        num_heads=vision.required_size("num_attention_heads"),
        whole_since="0.10.2",
    )
    inputs = vision.required_size("vision_output_dim")
    projector = up("multi_modal_projector.linear_1", inputs, decoder.hidden_size, bias=False, may_quantise=False)
    return (tower, Tower(modality="image", limited_by=("image",), modules=(projector,)))


def _vision(vision: ConfigKeys) -> Iterator[Module]:
    width, intermediate = vision.required_size("hidden_size"), vision.required_size("intermediate_size")
    patches = (vision.required_size("image_size") // vision.required_size("patch_size")) ** 2
    pixels = vision.required_size("num_channels") * vision.required_size("patch_size") ** 2
    middle = vision.required_size("projector_input_dim")
    bias = vision.flag("multi_modal_projector_bias")

    def block(name: str) -> Iterator[Module]:
        yield merged_qkv(f"{name}.self_attn.qkv_proj", width, width, may_quantise=False)
        yield down(f"{name}.self_attn.o_proj", width, width, may_quantise=False)
        yield up(f"{name}.mlp.fc1", width, intermediate, may_quantise=False)
        yield down(f"{name}.mlp.fc2", intermediate, width, may_quantise=False)
        yield from (layer_norm(f"{name}.input_layernorm", width), layer_norm(f"{name}.post_attention_layernorm", width))

    yield up("vision_model.patch_embedding.linear", pixels, width, bias=False, may_quantise=False)
    yield Tensor(name="vision_model.class_embedding", elements=width)
    yield Tensor(name="vision_model.positional_embedding_vlm", elements=(patches + 1) * width)
    yield from (layer_norm("vision_model.layernorm_pre", width), layer_norm("vision_model.layernorm_post", width))
    yield from blocks("vision_model.model.layers", vision.required_size("num_hidden_layers"), block)
    yield up("vision_model.vision_adapter.mlp.fc1", intermediate, middle, bias=bias, may_quantise=False)
    yield _rotary_table(patches + 1, width // vision.required_size("num_attention_heads"))
    outputs = vision.required_size("projector_output_dim")
    yield down("vision_model.vision_adapter.mlp.fc2", middle, outputs, bias=bias, may_quantise=False)


def _rotary_table(places: int, head_dim: int) -> Tensor:
    """Half of a head is rotated, by complex numbers of two fp32 each."""
    name = "vision_model.model.layers.0.self_attn.rotary_emb.cos_sin_cache"
    return Tensor(name=name, elements=2 * places * (head_dim // 2), dtype="float32", is_buffer=True)


def _tokens(vision: ConfigKeys) -> int:
    """16 tiles and the thumbnail, each shuffled down by the square of its ratio."""
    side = vision.required_size("image_size") // vision.required_size("patch_size")
    return TILES * int(side**2 * (vision.number("pixel_shuffle_ratio") or 1.0) ** 2)


WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "Llama4ForConditionalGeneration": Wrapper(
            model_type="llama4", language="Llama4ForCausalLM", towers=llama4, left_out_since="0.10.1"
        ),
    }
)
