"""The dtype of the cache: asked for, declared by the checkpoint, or brought in by a model, by release."""

import pytest

from planner import catalog
from planner.core.defaults import resolve
from planner.core.engine import EngineArgs
from planner.core.errors import Unknown
from planner.core.estimate import estimate
from planner.core.model import model_from_config
from tests.core.questions import H100, LLAMA_3_8B, ask, gpu

B200 = gpu("B200", 178, 178, 178, (10, 0))
MODELOPT = {
    "producer": {"name": "modelopt"},
    "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]},
}
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "ignore": ["lm_head"],
    "kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True},
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True},
            "input_activations": {
                "num_bits": 8,
                "type": "float",
                "strategy": "tensor",
                "dynamic": False,
                "symmetric": True,
            },
        }
    },
}
ASKED_BF16 = {"kv_cache_dtype": "bfloat16"}


def cached(config, version, device=H100, **flags):
    """Return the resolved dtype and the bytes of an element."""
    model = model_from_config(config, name="tested")
    resolved = resolve(EngineArgs(**flags), model=model, gpu=device, facts=catalog.engine_facts(version))
    return resolved.caches.kv_cache_dtype, resolved.kv_element_bytes


@pytest.mark.parametrize(
    ("quantization", "version", "flags", "dtype"),
    [
        (MODELOPT, "0.13.0", {}, "auto"),
        (MODELOPT, "0.14.0", {}, "fp8_e4m3"),
        (MODELOPT, "0.14.0", ASKED_BF16, "bfloat16"),
        (COMPRESSED, "0.14.1", {}, "auto"),
        (COMPRESSED, "0.15.0", {}, "fp8"),
        (COMPRESSED, "0.21.0", ASKED_BF16, "fp8"),  # "Overriding kv_cache_dtype"
        (COMPRESSED, "0.22.1", ASKED_BF16, "bfloat16"),
    ],
)
def test_a_declared_dtype_counts_from_the_release_that_reads_it(quantization, version, flags, dtype):
    resolved, element_bytes = cached({**LLAMA_3_8B, "quantization_config": quantization}, version, **flags)
    assert (resolved, element_bytes) == (dtype, 1 if dtype.startswith("fp8") else 2)


@pytest.mark.parametrize(
    ("name", "version", "device", "flags", "dtype"),
    [
        ("deepseek-ai/DeepSeek-V3.2", "0.11.0", H100, {}, "fp8_ds_mla"),
        ("deepseek-ai/DeepSeek-V3.2", "0.11.1", H100, {}, "auto"),
        ("deepseek-ai/DeepSeek-V3.2", "0.17.1", H100, {"kv_cache_dtype": "fp8"}, "fp8_ds_mla"),
        ("deepseek-ai/DeepSeek-V3.2", "0.32.0", H100, ASKED_BF16, "auto"),
        ("zai-org/GLM-5.1", "0.32.0", H100, {}, "auto"),
        ("zai-org/GLM-5.1", "0.31.0", B200, {}, "auto"),
        ("zai-org/GLM-5.1", "0.32.0", B200, {}, "fp8_e4m3"),
    ],
)
def test_sparse_latents_have_a_dtype_of_their_own(name, version, device, flags, dtype):
    assert cached(catalog.find_config(name), version, device, **flags)[0] == dtype


def test_a_dtype_that_compressed_caches_do_not_know_is_said_by_name():
    with pytest.raises(Unknown, match="turboquant_k8v4") as fault:
        estimate(ask(catalog.find_config("deepseek-ai/DeepSeek-V4-Flash"), B200, kv_cache_dtype="turboquant_k8v4"))
    assert fault.value.field == "kv_cache_dtype"
