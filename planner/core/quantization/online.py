"""`--quantization` on a checkpoint that is not quantised: vLLM quantises it while it loads."""

from planner.core.engine import Version
from planner.core.errors import Unknown
from planner.core.quantization.names import LayerName
from planner.core.quantization.other import bitsandbytes_recipe
from planner.core.quantization.recipe import Recipe
from planner.core.scheme import Scheme

PLAIN_FP8_UNTIL = Version(0, 31)  # the first release whose `fp8` wants a quantised checkpoint
BITSANDBYTES_UNTIL = Version(0, 28)
TENSOR = Scheme(method="fp8", weight_bits=8, made_at_load=True)
BLOCK = Scheme(method="fp8", weight_bits=8, granularity="block", block=(128, 128), made_at_load=True)
CHANNEL = Scheme(method="fp8", weight_bits=8, granularity="channel", made_at_load=True)
MXFP8 = Scheme(method="mxfp8", weight_bits=8, granularity="group", group_size=32, made_at_load=True)
MXFP4 = Scheme(method="mxfp4", weight_bits=4, granularity="group", group_size=32, made_at_load=True)
INT8 = Scheme(method="int8", weight_bits=8, granularity="channel", made_at_load=True)
NVFP4 = Scheme(method="nvfp4", weight_bits=4, granularity="group", group_size=16, made_at_load=True)
LINEAR: dict[str, Scheme | None] = {
    "fp8": TENSOR,
    "fp8_per_tensor": TENSOR,
    "fp8_per_block": BLOCK,
    "fp8_per_channel": CHANNEL,
    "ptpc_fp8": CHANNEL,
    "mxfp8": MXFP8,
    "mxfp4": MXFP4,
    "experts_int8": None,
    "int8_per_channel_weight_only": None,
    "nvfp4_per_token": None,
}
EXPERTS = {**LINEAR, "experts_int8": INT8, "int8_per_channel_weight_only": INT8, "nvfp4_per_token": NVFP4}


def online_recipe(name: str, version: Version | None = None) -> Recipe:
    """Return which scheme each layer gets from `--quantization NAME`; neither embedding nor head gets one.

    Raises Unknown for a name whose effect is not known. Source: vLLM `config.quantization._ONLINE_SHORTHANDS`,
    `quantization.online` (0.20 to 0.33), `Fp8Config` with an unquantised checkpoint (0.8.5 to 0.30).
    """
    if name == "bitsandbytes" and (version is None or version < BITSANDBYTES_UNTIL):
        return bitsandbytes_recipe({}, lambda module: module)
    if name not in LINEAR:
        raise Unknown(
            field="quantization",
            message=f"what --quantization {name} makes of an unquantised checkpoint is not planned.",
            fix=f"choose one of {', '.join(LINEAR)}, or a checkpoint that is quantised",
        )

    def scheme_of(layer: LayerName) -> Scheme | None:
        return {"linear": LINEAR[name], "experts": EXPERTS[name]}.get(layer.kind)

    return Recipe(scheme_of=scheme_of)
