"""Moonshot's models that see: a MoonViT beside a DeepSeek-like or a Kimi language model.

Source: vLLM 0.32 `models.kimi_k25_vit`, `models.kimi_k25`, `vllm.models.kimi_k3`, `models.moonvit`, `models.kimi_vl`.
"""

import math
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
    layer_norm,
    merged_qkv,
    numbers,
    rms_norm,
    table,
    tower_keys,
    up,
    whole,
)

_NAMES = {
    "hidden_size": "vt_hidden_size",
    "intermediate_size": "vt_intermediate_size",
    "num_attention_heads": "vt_num_attention_heads",
    "num_hidden_layers": "vt_num_hidden_layers",
    "pos_emb_height": "init_pos_emb_height",
    "pos_emb_width": "init_pos_emb_width",
    "pos_emb_time": "init_pos_emb_time",
}
RMS_NORM = "rmsnorm"
NORM_LAST = "patchmergerv2"


def kimi_k25(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return Kimi K2.5's tower: whole on every rank where TP does not divide its heads."""
    vision = _renamed(tower_keys(keys, "vision_config", "kimi_k25_vision"))
    return (_tower((*_vit(vision), *_projector(vision, decoder.hidden_size)), vision, ("vision_chunk",)),)


def kimi_k3(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return Kimi K3's tower."""
    vision = _renamed(tower_keys(keys, "vision_config", "kimi_k3_vision"))
    return (_tower((*_vit(vision), *_projector(vision, decoder.hidden_size)), vision, ("image",)),)


def kimi_vl(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return Kimi-VL's tower: the same without time, and a whole copy of it only where it is asked for."""
    vision = _renamed(tower_keys(keys, "vision_config", "moonvit"))
    tower = (module for module in _vit(vision) if not (isinstance(module, Tensor) and module.is_buffer))
    projector = (
        replace(module, name=module.name.replace("mm_projector", "multi_modal_projector"))
        for module in _projector(vision, decoder.hidden_size)
    )
    whole_if_asked = _tower((*tower, *projector), vision, ("image",))
    return (replace(whole_if_asked, whole_if_indivisible=False, whole_since="0.10.2"),)


def _tower(modules: tuple[Module, ...], vision: ConfigKeys, limited_by: tuple[str, ...]) -> Tower:
    return Tower(
        modality="image",
        modules=modules,
        limited_by=limited_by,
        hidden_size=vision.required_size("hidden_size"),
        intermediate_size=vision.required_size("intermediate_size"),
        num_heads=vision.required_size("num_attention_heads"),
        whole_if_indivisible=True,
        whole_since="0.15",
    )


def _renamed(vision: ConfigKeys) -> ConfigKeys:
    return ConfigKeys(vision.config, _NAMES, vision.defaults)


def _norm(name: str, vision: ConfigKeys) -> Tensor:
    width = vision.required_size("hidden_size")
    return rms_norm(name, width) if vision.text("norm_type") == RMS_NORM else layer_norm(name, width)


def _vit(vision: ConfigKeys) -> Iterator[Module]:
    """Positions are learned by height and width, and fixed by time."""
    width = vision.required_size("hidden_size")
    places = vision.required_size("pos_emb_height") * vision.required_size("pos_emb_width")
    kernel, patch_bias = vision.required_size("patch_size") ** 2, vision.flag("patch_embed_proj_bias")
    yield convolution("vision_tower.patch_embed.proj", 3, width, kernel, bias=patch_bias)
    yield table("vision_tower.patch_embed.pos_emb", places, width)
    times = vision.required_size("pos_emb_time") * width
    yield Tensor(name="vision_tower.patch_embed.pos_emb.time_weight", elements=times, is_buffer=True)
    layers = vision.required_size("num_hidden_layers")
    yield from blocks("vision_tower.encoder.blocks", layers, lambda name: _block(name, vision))
    yield _norm("vision_tower.encoder.final_layernorm", vision)


def _block(name: str, vision: ConfigKeys) -> Iterator[Module]:
    width, intermediate = vision.required_size("hidden_size"), vision.required_size("intermediate_size")
    queries = vision.size("qkv_hidden_size") or width
    bias = vision.flag("attn_bias")
    yield from (_norm(f"{name}.norm0", vision), _norm(f"{name}.norm1", vision))
    yield up(f"{name}.mlp.fc0", width, intermediate, bias=vision.flag("linear_bias"), may_quantise=False)
    yield down(f"{name}.mlp.fc1", intermediate, width, bias=vision.flag("linear_bias"), may_quantise=False)
    yield merged_qkv(f"{name}.wqkv", width, queries, bias=bias, may_quantise=False)
    yield down(f"{name}.wo", queries, width, bias=bias, may_quantise=False)


def _projector(vision: ConfigKeys, outputs: int) -> Iterator[Module]:
    """Two whole layers over merged patches, with a norm before them or, in the second kind, after."""
    width = vision.required_size("hidden_size")
    merged = width * math.prod(numbers(vision, "merge_kernel_size"))
    norm_last = vision.text("mm_projector_type") == NORM_LAST
    yield rms_norm("mm_projector.post_norm", outputs) if norm_last else layer_norm("mm_projector.pre_norm", width)
    yield whole("mm_projector.linear_1", merged, merged, bias=not norm_last, may_quantise=False)
    yield whole("mm_projector.linear_2", merged, outputs, bias=not norm_last, may_quantise=False)


_CHECKPOINT_NAMES = (
    ("language_model.layers.", "language_model.model.layers."),
    ("mm_projector.proj.0", "mm_projector.linear_1"),
    ("mm_projector.proj.2", "mm_projector.linear_2"),
)

WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "KimiVLForConditionalGeneration": Wrapper(
            model_type="kimi_vl", language="DeepseekV3ForCausalLM", towers=kimi_vl, hf_to_vllm=_CHECKPOINT_NAMES[:1]
        ),
        "KimiK25ForConditionalGeneration": Wrapper(
            model_type="kimi_k25",
            language="DeepseekV3ForCausalLM",
            towers=kimi_k25,
            hf_to_vllm=_CHECKPOINT_NAMES,
            first="0.15",
            left_out_since="0.16",
        ),
        "KimiK3ForConditionalGeneration": Wrapper(
            model_type="kimi_k3",
            language="KimiLinearForCausalLM",
            towers=kimi_k3,
            hf_to_vllm=_CHECKPOINT_NAMES,
            first="0.27",
        ),
    }
)
