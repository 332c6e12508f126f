"""GLM-4.1V and GLM-4.5V: a tower with a convolution that merges four patches into one.

Source: vLLM 0.32 `models.glm4_1v`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Tower
from planner.core.modules import Module, Tensor
from planner.core.tower import (
    Wrapper,
    blocks,
    convolution,
    down,
    gate_and_up,
    layer_norm,
    rms_norm,
    rotary_table,
    table,
    tower_keys,
    up,
)

ROTARY_ROWS = 8192


def glm4v(keys: ConfigKeys, _: Decoder) -> tuple[Tower, ...]:
    """Return the tower; its layers are as wide inside as its output, its merger as `intermediate_size` says."""
    vision = tower_keys(keys, "vision_config", "glm4v_vision")
    tower = Tower(
        modality="image",
        modules=tuple(_modules(vision)),
        hidden_size=vision.required_size("hidden_size"),
        intermediate_size=vision.required_size("out_hidden_size"),
        num_heads=vision.required_size("num_heads"),
        whole_since="0.10.2",
    )
    return (tower,)


def _modules(vision: ConfigKeys) -> Iterator[Module]:
    width, outputs = vision.required_size("hidden_size"), vision.required_size("out_hidden_size")
    patch, heads = vision.required_size("patch_size"), vision.required_size("num_heads")
    places = (vision.required_size("image_size") // patch) ** 2
    kernel = vision.required_size("temporal_patch_size") * patch**2
    bias = vision.flag("attention_bias")

    def block(name: str) -> Iterator[Module]:
        yield from (rms_norm(f"{name}.norm1", width), rms_norm(f"{name}.norm2", width))
        yield up(f"{name}.attn.qkv", width, 3 * width, bias=bias)
        yield down(f"{name}.attn.proj", width, width, bias=bias)
        yield gate_and_up(f"{name}.mlp.gate_up_proj", width, outputs)
        yield down(f"{name}.mlp.down_proj", outputs, width, bias=False)

    yield convolution("visual.patch_embed.proj", vision.required_size("in_channels"), width, kernel)
    yield table("visual.embeddings.position_embedding", places, width)
    yield Tensor(name="visual.embeddings.position_ids", elements=places, dtype="int64", is_buffer=True)
    yield from blocks("visual.blocks", vision.required_size("depth"), block)
    yield from (rms_norm("visual.post_conv_layernorm", width), rms_norm("visual.post_layernorm", width))
    yield convolution("visual.downsample", width, outputs, vision.required_size("spatial_merge_size") ** 2)
    yield from _merger(outputs, vision.required_size("intermediate_size"))
    yield rotary_table("visual.rotary_pos_emb", ROTARY_ROWS, width // heads // 2)


def _merger(width: int, intermediate: int) -> Iterator[Module]:
    yield up("visual.merger.proj", width, width, bias=False)
    yield layer_norm("visual.merger.post_projection_norm", width)
    yield gate_and_up("visual.merger.gate_up_proj", width, intermediate)
    yield down("visual.merger.down_proj", intermediate, width, bias=False)


_GLM4V = Wrapper(
    model_type="glm4v",
    language="Glm4ForCausalLM",
    towers=glm4v,
    hf_to_vllm=(
        ("lm_head.", "language_model.lm_head."),
        ("model.language_model.", "language_model.model."),
        ("model.visual.", "visual."),
    ),
    first="0.9.2",
)

WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "Glm4vForConditionalGeneration": _GLM4V,
        "Glm4vMoeForConditionalGeneration": replace(
            _GLM4V, model_type="glm4v_moe", language="Glm4MoeForCausalLM", first="0.10.1"
        ),
    }
)
