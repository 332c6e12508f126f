"""The quantisation methods that vLLM knows by name: which releases have them, on which GPUs, in which dtypes."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.core.engine import Version

HALVES = ("float16", "bfloat16")
HALF = ("float16",)
BRAIN = ("bfloat16",)
ANY = ("float16", "bfloat16", "float32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One name of `--quantization`.

    It lives from `first` until just before `gone`, and must be asked for again (`--allow-deprecated-quantization`)
    between the two of `deprecated`. `capabilities` are the least compute capabilities (70 is 7.0), each with the
    release it holds from. Source: vLLM `model_executor.layers.quantization`, read in 36 releases of 0.8.5 to 0.33.
    """

    first: str = "0.8"
    gone: str = ""
    deprecated: tuple[str, str] = ("", "")
    capabilities: tuple[tuple[str, int], ...] = ()
    dtypes: tuple[str, ...] = HALVES

    def lives(self, version: Version) -> bool:
        """Whether a release has it."""
        return _within(version, self.first, self.gone)

    def is_deprecated(self, version: Version) -> bool:
        """Whether a release wants it asked for again."""
        return bool(self.deprecated[0]) and _within(version, *self.deprecated)

    def least_capability(self, version: Version) -> int:
        """Return the least compute capability in a release, 0 where nothing is asked."""
        held = [least for since, least in self.capabilities if version >= Version.parse(since)]
        return held[-1] if held else 0


def _within(version: Version, first: str, gone: str) -> bool:
    return version >= Version.parse(first) and (not gone or version < Version.parse(gone))


def _from(capability: int, *later: tuple[str, int]) -> tuple[tuple[str, int], ...]:
    return (("0.8", capability), *later)


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "aqlm": Method(gone="0.10.1", capabilities=_from(60), dtypes=HALF),
        "auto-round": Method(first="0.9", gone="0.15", deprecated=("0.14", "0.15"), capabilities=_from(60)),
        "auto_awq": Method(first="0.24", capabilities=_from(75)),
        "auto_gptq": Method(first="0.22", capabilities=_from(60)),
        "awq": Method(capabilities=_from(75), dtypes=HALF),
        "awq_marlin": Method(capabilities=_from(80, ("0.14", 75))),
        "bitblas": Method(gone="0.16", deprecated=("0.14", "0.16"), capabilities=_from(70)),
        "bitsandbytes": Method(gone="0.28", capabilities=_from(70), dtypes=ANY),
        "compressed-tensors": Method(capabilities=_from(70), dtypes=ANY),
        "deepseek_v4_fp8": Method(first="0.20", capabilities=_from(75)),
        "deepspeedfp": Method(gone="0.15", deprecated=("0.14", "0.15"), capabilities=_from(60)),
        "experts_int8": Method(deprecated=("0.14", "0.20"), capabilities=_from(80)),
        "fbgemm_fp8": Method(deprecated=("0.14", ""), capabilities=_from(80)),
        "fp8": Method(capabilities=_from(80, ("0.14", 75))),
        "fp8_per_block": Method(first="0.20", capabilities=_from(75)),
        "fp8_per_channel": Method(first="0.24", capabilities=_from(75)),
        "fp8_per_tensor": Method(first="0.20", capabilities=_from(75)),
        "fp_quant": Method(first="0.11.1", deprecated=("0.14", ""), capabilities=_from(100), dtypes=BRAIN),
        "gguf": Method(gone="0.24", capabilities=_from(60), dtypes=ANY),
        "gpt_oss_mxfp4": Method(first="0.20", capabilities=_from(80), dtypes=BRAIN),
        "gptq": Method(capabilities=_from(60), dtypes=HALF),
        "gptq_bitblas": Method(gone="0.16", deprecated=("0.14", "0.16"), capabilities=_from(80)),
        "gptq_marlin": Method(capabilities=_from(80, ("0.14", 75))),
        "gptq_marlin_24": Method(gone="0.16", deprecated=("0.14", "0.16"), capabilities=_from(80), dtypes=HALF),
        "hqq": Method(gone="0.15", deprecated=("0.14", "0.15"), capabilities=_from(80)),
        "humming": Method(first="0.20", capabilities=_from(75)),
        "inc": Method(first="0.10", capabilities=(("0.15", 60),)),
        "int8_per_channel_weight_only": Method(first="0.20", capabilities=_from(75)),
        "ipex": Method(gone="0.16", deprecated=("0.14", "0.16")),
        "marlin": Method(gone="0.10.2", capabilities=_from(80), dtypes=HALF),
        "modelopt": Method(capabilities=_from(89, ("0.17.1", 75), ("0.25", 89), ("0.27", 80))),
        "modelopt_fp4": Method(first="0.9", capabilities=_from(80, ("0.14", 75))),
        "modelopt_mixed": Method(first="0.17", capabilities=_from(89, ("0.24", 75))),
        "modelopt_mxfp8": Method(first="0.16", capabilities=_from(100, ("0.20", 80)), dtypes=BRAIN),
        "moe_wna16": Method(capabilities=_from(70)),
        "mxfp4": Method(first="0.10.1", capabilities=_from(80), dtypes=BRAIN),
        "mxfp8": Method(first="0.19", capabilities=_from(100, ("0.20", 75))),
        "nvfp4_per_token": Method(first="0.26", capabilities=_from(75)),
        "online": Method(first="0.20", capabilities=_from(75)),
        "petit_nvfp4": Method(first="0.10.2", gone="0.20", deprecated=("0.14", "0.20"), capabilities=_from(90)),
        "ptpc_fp8": Method(gone="0.19", deprecated=("0.14", "0.19"), capabilities=_from(80)),
        "qqq": Method(gone="0.10.2", capabilities=_from(80), dtypes=HALF),
        "quark": Method(capabilities=_from(70)),
        "rtn": Method(first="0.9.2", gone="0.15", deprecated=("0.14", "0.15"), capabilities=_from(80)),
        "torchao": Method(capabilities=_from(75), dtypes=ANY),
        "tpu_int8": Method(gone="0.14"),
    }
)
FAMILIES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "awq": frozenset({"awq", "awq_marlin", "auto_awq", "cpu_awq", "moe_wna16", "humming"}),
        "gptq": frozenset({"gptq", "gptq_marlin", "auto_gptq", "gptq_bitblas", "marlin", "moe_wna16", "humming"}),
        "inc": frozenset({"inc", "auto-round", "auto_round"}),
        "modelopt": frozenset({"modelopt", "modelopt_fp4", "modelopt_mixed", "modelopt_mxfp8"}),
        "mxfp4": frozenset({"mxfp4", "gpt_oss_mxfp4"}),
        "fp8": frozenset({"fp8", "deepseek_v4_fp8"}),
        "compressed-tensors": frozenset({"compressed-tensors", "compressed_tensors", "humming"}),
    }
)
MODELOPT_NAMES = {"NVFP4": "modelopt_fp4", "MXFP8": "modelopt_mxfp8", "MIXED_PRECISION": "modelopt_mixed"}


def method_in(family: str, algorithm: str, *, version: Version, capability: int) -> str:
    """Return the name under which a release loads a checkpoint of that family on a GPU of that capability.

    AWQ and GPTQ go by their faster kernels where the GPU has them. Source: vLLM `override_quantization_method`.
    """
    if family in ("awq", "gptq"):
        if METHODS[f"auto_{family}"].lives(version):
            return f"auto_{family}"
        fast = f"{family}_marlin"
        return fast if not capability or capability >= METHODS[fast].least_capability(version) else family
    if family == "modelopt":
        return MODELOPT_NAMES.get(algorithm.upper(), "modelopt")
    if family == "inc":
        return "auto-round" if METHODS["auto-round"].lives(version) else "inc"
    return family
