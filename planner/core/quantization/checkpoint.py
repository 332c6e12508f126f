"""What a config.json says of its quantisation, under the method's name in vLLM."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.core.quantization.compressed import compressed_recipe
from planner.core.quantization.fp8 import deepseek_v4_recipe, fbgemm_recipe, fp8_recipe
from planner.core.quantization.integer import autoround_recipe, awq_recipe, gptq_recipe
from planner.core.quantization.modelopt import MIXED, modelopt_algorithm, modelopt_part, modelopt_recipe
from planner.core.quantization.other import bitsandbytes_recipe, experts_int8_recipe, mxfp4_recipe, quark_recipe
from planner.core.quantization.recipe import NameMap, Recipe, unplanned, wrong

KEYS = ("quantization_config", "compression_config")
SPELLINGS = {
    "compressed_tensors": "compressed-tensors",
    "awq_marlin": "awq",
    "auto_awq": "awq",
    "gptq_marlin": "gptq",
    "auto_gptq": "gptq",
    "auto-round": "inc",
    "intel/auto-round": "inc",
    "gpt_oss_mxfp4": "mxfp4",
}
KV_ALGORITHMS = {"fp8": "fp8", "fp8_e4m3": "fp8", "nvfp4": "nvfp4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How a checkpoint is quantised.

    `method` is vLLM's name ("fp8", "awq", "gptq", "compressed-tensors", "modelopt", "mxfp4", ...), `algorithm` what
    ModelOpt calls it ("NVFP4", "MIXED_PRECISION", ...). `kv_cache` is the format that the checkpoint declares for keys
    and values ("fp8", "nvfp4", "" for none). `stated` is the config's own object.
    """

    method: str
    algorithm: str = ""
    kv_cache: str = ""
    model_type: str = ""
    expert_dtype: str = "fp4"
    stated: Mapping[str, object]

    def recipe(self, mapped: NameMap) -> Recipe:
        """Return which scheme each layer has; `mapped` turns a checkpoint's name into vLLM's.

        Raises Unknown for a method whose layout is not planned.
        """
        read = RECIPES.get(self.method)
        if read is None:
            raise unplanned(f"weights of quant_method {self.method or 'none stated'} are not planned yet.")
        return read(self, mapped)


def _fp8(quantization: Quantization, mapped: NameMap) -> Recipe:
    if quantization.model_type == "deepseek_v4":
        return deepseek_v4_recipe(quantization.stated, mapped, expert_dtype=quantization.expert_dtype)
    return fp8_recipe(quantization.stated, mapped)


RECIPES: Mapping[str, Callable[[Quantization, NameMap], Recipe]] = MappingProxyType(
    {
        "fp8": _fp8,
        "fbgemm_fp8": lambda q, mapped: fbgemm_recipe(q.stated, mapped),
        "awq": lambda q, mapped: awq_recipe(q.stated, mapped),
        "gptq": lambda q, mapped: gptq_recipe(q.stated, mapped),
        "inc": lambda q, mapped: autoround_recipe(q.stated, mapped),
        "compressed-tensors": lambda q, mapped: compressed_recipe(q.stated, mapped),
        "modelopt": lambda q, mapped: modelopt_recipe(q.stated, mapped),
        "mxfp8": lambda q, mapped: modelopt_recipe({**q.stated, "quant_algo": "MXFP8"}, mapped),
        "mxfp4": lambda q, _: mxfp4_recipe(gpt_oss=q.model_type == "gpt_oss"),
        "quark": lambda q, mapped: quark_recipe(q.stated, mapped),
        "experts_int8": lambda *_: experts_int8_recipe(),
        "bitsandbytes": lambda q, mapped: bitsandbytes_recipe(q.stated, mapped),
    }
)


def read_quantization(config: Mapping[str, object]) -> Quantization | None:
    """Return how a config.json says that its weights are quantised; None when they are not.

    `config` has the language model's keys over the outer ones. Raises BadInput for an object of the wrong shape.
    Source: vLLM `transformers_utils.model_arch_config_convertor`, `ModelConfig._verify_quantization` (0.32).
    """
    stated = next((config[key] for key in KEYS if config.get(key)), None)
    if stated is None:
        return None
    if not isinstance(stated, Mapping):
        raise wrong("value", stated, "an object")
    return Quantization(
        method=_method(stated),
        algorithm=modelopt_algorithm(stated),
        kv_cache=_kv_cache(stated),
        model_type=str(config.get("model_type") or ""),
        expert_dtype=str(config.get("expert_dtype") or "fp4"),
        stated=stated,
    )


def _method(stated: Mapping[str, object]) -> str:
    """What lies in hf_quant_config.json names no method; it is ModelOpt's."""
    method = str(stated.get("quant_method") or "").lower()
    if method.startswith("modelopt") or (not method and modelopt_part(stated) is not stated):
        return "modelopt"
    return SPELLINGS.get(method, method)


def _kv_cache(stated: Mapping[str, object]) -> str:
    """A named algorithm, or an object with type and bits (vLLM `get_kv_cache_quant_algo_string`)."""
    part = modelopt_part(stated)
    declared = part.get("kv_cache_scheme") or stated.get("kv_cache_scheme") or part.get("kv_cache_quant_algo")
    if isinstance(declared, Mapping):
        float_bits = declared.get("num_bits") if declared.get("type") == "float" else None
        return {8: "fp8", 4: "nvfp4"}.get(float_bits, "") if isinstance(float_bits, int) else ""
    return KV_ALGORITHMS.get(str(declared or "").lower(), "")


def is_mixed(quantization: Quantization) -> bool:
    """Whether each layer states its own algorithm."""
    return quantization.algorithm == MIXED
