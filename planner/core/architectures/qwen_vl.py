"""The Qwen models that see: Qwen2-VL, Qwen2.5-VL, Qwen3-VL and the towers of Qwen3.5.

Source: vLLM 0.32 `models.qwen2_vl`, `models.qwen2_5_vl`, `models.qwen3_vl`, `models.qwen3_5`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Tower
from planner.core.engine import Version
from planner.core.modules import Module
from planner.core.tower import (
    Wrapper,
    blocks,
    convolution,
    down,
    gate_and_up,
    layer_norm,
    numbers,
    rms_norm,
    rotary_table,
    table,
    tower_keys,
    up,
)

ROTARY_ROWS = 8192
ONE_ROW_SINCE = Version(0, 32)
TOKENS_OF_LARGEST_IMAGE = 16384
_NAMES = (
    ("model.language_model.", "language_model.model."),
    ("model.visual.", "visual."),
    ("lm_head.", "language_model.lm_head."),
)
_OLD_NAMES = (*_NAMES, ("model.", "language_model.model."))


def _tower(
    modules: Iterator[Module], *, width: int, intermediate: int, heads: int, whole_since: str = "0.11"
) -> tuple[Tower, ...]:
    """The largest image is what the published image processors allow: 12.8 to 16.8 million pixels, 1 token for 28^2."""
    tower = Tower(
        modality="image",
        modules=tuple(modules),
        max_tokens_per_item=TOKENS_OF_LARGEST_IMAGE,
        hidden_size=width,
        intermediate_size=intermediate,
        num_heads=heads,
        whole_since=whole_since,
    )
    return (tower,)


def _patches(vision: ConfigKeys, width: int, *, bias: bool) -> Module:
    kernel = vision.required_size("temporal_patch_size") * vision.required_size("patch_size") ** 2
    return convolution("visual.patch_embed.proj", vision.required_size("in_channels"), width, kernel, bias=bias)


def _rotary(width: int, heads: int) -> Module:
    return rotary_table("visual.rotary_pos_emb", ROTARY_ROWS, width // heads // 2)


def _merger(prefix: str, vision: ConfigKeys, width: int, outputs: int, norm: Module) -> Iterator[Module]:
    """Qwen2's mergers count their layers as a sequence with an activation between."""
    merged = width * vision.required_size("spatial_merge_size") ** 2
    yield norm
    yield up(f"{prefix}.mlp.0", merged, merged)
    yield down(f"{prefix}.mlp.2", merged, outputs)


def qwen2_vl(keys: ConfigKeys, _: Decoder) -> tuple[Tower, ...]:
    """Return Qwen2-VL's tower."""
    vision = tower_keys(keys, "vision_config", "qwen2_vl_vision")
    width, heads = vision.required_size("embed_dim"), vision.required_size("num_heads")
    intermediate = int(width * (vision.number("mlp_ratio") or 0))

    def block(name: str) -> Iterator[Module]:
        yield from (layer_norm(f"{name}.norm1", width), layer_norm(f"{name}.norm2", width))
        yield up(f"{name}.attn.qkv", width, 3 * width)
        yield down(f"{name}.attn.proj", width, width)
        yield from (up(f"{name}.mlp.fc1", width, intermediate), down(f"{name}.mlp.fc2", intermediate, width))

    def modules() -> Iterator[Module]:
        yield _patches(vision, width, bias=False)
        yield from blocks("visual.blocks", vision.required_size("depth"), block)
        outputs = vision.required_size("hidden_size")
        yield from _merger("visual.merger", vision, width, outputs, layer_norm("visual.merger.ln_q", width))
        yield _rotary(width, heads)

    return _tower(modules(), width=width, intermediate=intermediate, heads=heads)


def qwen2_5_vl(keys: ConfigKeys, _: Decoder) -> tuple[Tower, ...]:
    """Return Qwen2.5-VL's tower: RMS norms and gated MLPs."""
    vision = tower_keys(keys, "vision_config", "qwen2_5_vl_vision")
    width, heads = vision.required_size("hidden_size"), vision.required_size("num_heads")
    intermediate = vision.required_size("intermediate_size")

    def block(name: str) -> Iterator[Module]:
        yield from (rms_norm(f"{name}.norm1", width), rms_norm(f"{name}.norm2", width))
        yield up(f"{name}.attn.qkv", width, 3 * width)
        yield down(f"{name}.attn.proj", width, width)
        yield gate_and_up(f"{name}.mlp.gate_up_proj", width, intermediate, bias=True)
        yield down(f"{name}.mlp.down_proj", intermediate, width)

    def modules() -> Iterator[Module]:
        yield _patches(vision, width, bias=False)
        yield from blocks("visual.blocks", vision.required_size("depth"), block)
        outputs = vision.required_size("out_hidden_size")
        yield from _merger("visual.merger", vision, width, outputs, rms_norm("visual.merger.ln_q", width))
        yield _rotary(width, heads)

    return _tower(modules(), width=width, intermediate=intermediate, heads=heads, whole_since="0.10.2")


def qwen3_vl(keys: ConfigKeys, _: Decoder, *, model_type: str = "qwen3_vl_vision") -> tuple[Tower, ...]:
    """Return Qwen3-VL's tower, with a merger more for each layer whose features go deep into the language model."""
    vision = tower_keys(keys, "vision_config", model_type)
    return qwen3_tower(vision)


def qwen3_tower(vision: ConfigKeys) -> tuple[Tower, ...]:
    """Return the tower of Qwen3-VL and its successors from its own keys."""
    width, heads = vision.required_size("hidden_size"), vision.required_size("num_heads")
    intermediate = vision.required_size("intermediate_size")

    def block(name: str) -> Iterator[Module]:
        yield from (layer_norm(f"{name}.norm1", width), layer_norm(f"{name}.norm2", width))
        yield up(f"{name}.attn.qkv", width, 3 * width)
        yield down(f"{name}.attn.proj", width, width)
        yield up(f"{name}.mlp.linear_fc1", width, intermediate)
        yield down(f"{name}.mlp.linear_fc2", intermediate, width)

    def merger(name: str, norm_width: int) -> Iterator[Module]:
        merged = width * vision.required_size("spatial_merge_size") ** 2
        yield layer_norm(f"{name}.norm", norm_width)
        yield up(f"{name}.linear_fc1", merged, merged)
        yield down(f"{name}.linear_fc2", merged, vision.required_size("out_hidden_size"))

    def modules() -> Iterator[Module]:
        yield _patches(vision, width, bias=True)
        yield table("visual.pos_embed", vision.required_size("num_position_embeddings"), width)
        yield from blocks("visual.blocks", vision.required_size("depth"), block)
        yield from merger("visual.merger", width)
        deep = len(numbers(vision, "deepstack_visual_indexes"))
        merged = width * vision.required_size("spatial_merge_size") ** 2
        yield from blocks("visual.deepstack_merger_list", deep, partial(merger, norm_width=merged))
        yield _rotary(width, heads)

    return _tower(modules(), width=width, intermediate=intermediate, heads=heads)


def one_row(decoder: Decoder) -> Decoder:
    """Return Qwen3-VL's language model: its rotary table has one row a position since 0.32."""
    return replace(decoder, ropes=tuple(replace(rope, one_row_since=ONE_ROW_SINCE) for rope in decoder.ropes))


_qwen3_5 = partial(qwen3_vl, model_type="qwen3_5_vision")

WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "Qwen2VLForConditionalGeneration": Wrapper(
            model_type="qwen2_vl",
            language="Qwen2ForCausalLM",
            towers=qwen2_vl,
            hf_to_vllm=_OLD_NAMES,
            left_out_since="0.10.1",
        ),
        "Qwen2_5_VLForConditionalGeneration": Wrapper(
            model_type="qwen2_5_vl",
            language="Qwen2ForCausalLM",
            towers=qwen2_5_vl,
            hf_to_vllm=_OLD_NAMES,
            left_out_since="0.10.1",
        ),
        "Qwen3VLForConditionalGeneration": Wrapper(
            model_type="qwen3_vl",
            language="Qwen3ForCausalLM",
            towers=qwen3_vl,
            adapts=one_row,
            hf_to_vllm=_NAMES,
            first="0.11",
            left_out_since="0.11",
        ),
        "Qwen3VLMoeForConditionalGeneration": Wrapper(
            model_type="qwen3_vl_moe",
            language="Qwen3MoeForCausalLM",
            towers=qwen3_vl,
            adapts=one_row,
            hf_to_vllm=_NAMES,
            first="0.11",
            left_out_since="0.11",
        ),
        "Qwen3_5ForConditionalGeneration": Wrapper(
            model_type="qwen3_5", language="Qwen3_5ForCausalLM", towers=_qwen3_5, hf_to_vllm=_NAMES, first="0.17"
        ),
        "Qwen3_5MoeForConditionalGeneration": Wrapper(
            model_type="qwen3_5_moe", language="Qwen3_5MoeForCausalLM", towers=_qwen3_5, hf_to_vllm=_NAMES, first="0.17"
        ),
    }
)
