"""Quantised tunings by their names: what `-FP8-dynamic`, `quantized.w4a16` or `-AWQ` says of a checkpoint's layers.

Publishers quantise with few recipes and name their checkpoints after them; the config.json of a model whose base is
known can so be told. A boot of such a model counts as one whose model is assumed.
"""

import re
from collections.abc import Mapping
from typing import Any

UNTOUCHED = ("lm_head", "re:.*vision.*", "re:.*visual.*", "re:.*multi_modal_projector.*", "re:.*mlp\\.gate$")
FP8_WEIGHTS = {"num_bits": 8, "type": "float", "strategy": "channel", "dynamic": False, "symmetric": True}
FP8_INPUTS = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True, "symmetric": True}
INT8_WEIGHTS = {"num_bits": 8, "type": "int", "strategy": "channel", "dynamic": False, "symmetric": True}
INT8_INPUTS = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True, "symmetric": True}
INT4_WEIGHTS = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}
NVFP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}
LEFT_IN_16_BITS = (
    "lm_head",
    "model.layers.*.mlp.gate",
    "model.language_model.layers.*.linear_attn.conv*d",
    "model.language_model.layers.*.linear_attn.in_proj_a",
    "model.language_model.layers.*.linear_attn.in_proj_b",
    "model.language_model.layers.*.mlp.gate",
    "model.language_model.layers.*.mlp.shared_expert_gate",
    "model.visual.blocks.*.attn.proj",
    "model.visual.blocks.*.attn.qkv",
    "model.visual.blocks.*.mlp.linear_fc*",
    "model.visual.merger.linear_fc*",
    "model.visual.patch_embed.proj",
)
BLOCK_FP8 = {
    "quant_method": "fp8",
    "activation_scheme": "dynamic",
    "weight_block_size": [128, 128],
    "modules_to_not_convert": list(LEFT_IN_16_BITS),
}
MODELOPT_FP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "ignore": list(UNTOUCHED[:1])}
COMPRESSORS = re.compile(
    r"^(redhatai|neuralmagic|nm-testing|cyankiwi|unsloth|inferact|sakamakismile|cpatonn)/", re.IGNORECASE
)


def named_quantization(name: str, stated: str = "") -> Mapping[str, Any] | None:
    """Return the quantization_config that a checkpoint's name (or what its boot states of it) tells, or None."""
    text = f"{name} {stated}".lower()
    for pattern, config in _recipes(text, bool(COMPRESSORS.match(name))):
        if re.search(pattern, text):
            return config
    return None


def is_named_quantised(name: str) -> bool:
    """Whether a name alone tells of quantised weights."""
    return named_quantization(name) is not None


def _recipes(text: str, by_compressor: bool) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Patterns with what they mean, the most telling first."""
    modelopt = not by_compressor and ("nvidia/" in text or "modelopt" in text)
    fp4 = MODELOPT_FP4 if modelopt else _compressed("nvfp4-pack-quantized", NVFP4, NVFP4)
    fp8 = _compressed("float-quantized", FP8_WEIGHTS, FP8_INPUTS) if by_compressor else BLOCK_FP8
    bits = 8 if re.search(r"int8|8bit", text) else 4
    return (
        (r"nvfp4", fp4),
        (r"fp8[-_]dynamic", _compressed("float-quantized", FP8_WEIGHTS, FP8_INPUTS)),
        (r"w8a8", _compressed("int-quantized", INT8_WEIGHTS, INT8_INPUTS)),
        (r"w8a16", _compressed("pack-quantized", {**INT8_WEIGHTS, "num_bits": 8}, None)),
        (r"w4a16|compressed-tensors int4", _compressed("pack-quantized", INT4_WEIGHTS, None)),
        (r"auto-?_?round", {"quant_method": "auto-round", "bits": bits, "group_size": 128, "sym": True}),
        (r"gptq", {"quant_method": "gptq", "bits": bits, "group_size": 128, "sym": True, "desc_act": False}),
        (r"awq", {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}),
        (r"bnb|bitsandbytes", {"quant_method": "bitsandbytes", "load_in_4bit": True}),
        (r"(?:^|[-_ ])fp8(?:$|[-_ ])", fp8),
    )


def _compressed(form: str, weights: Mapping[str, Any], inputs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    group = {"targets": ["Linear"], "weights": dict(weights), "input_activations": inputs and dict(inputs)}
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "ignore": list(UNTOUCHED),
        "config_groups": {"group_0": group},
    }
