"""Quantised checkpoints by their names."""

import pytest

from planner.accuracy.variants import named_quantization


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "compressed-tensors"),
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8", "compressed-tensors"),
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w4a16", "compressed-tensors"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "fp8"),
        ("Qwen/Qwen2.5-32B-Instruct-AWQ", "awq"),
        ("Qwen/Qwen2.5-32B-Instruct-GPTQ-Int4", "gptq"),
        ("nvidia/Qwen3-8B-NVFP4", "modelopt"),
        ("unsloth/Qwen3-8B-NVFP4", "compressed-tensors"),
        ("qwen3.6-27b-autoround-int4", "auto-round"),
    ],
)
def test_a_name_tells_the_method(name, method):
    assert named_quantization(name)["quant_method"] == method


def test_a_plain_name_tells_nothing():
    assert named_quantization("meta-llama/Llama-3.1-8B-Instruct") is None


def test_gptq_in_8_bits_is_told_apart():
    assert named_quantization("x/y-GPTQ-Int8")["bits"] == 8
