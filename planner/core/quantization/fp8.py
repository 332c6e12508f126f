"""Checkpoints in fp8 as DeepSeek, Qwen, Mistral and Meta publish them."""

from collections.abc import Mapping

from planner.core.quantization.names import Entries, LayerName, is_skipped
from planner.core.quantization.recipe import NameMap, Recipe, block_in, names_in
from planner.core.scheme import Scheme


def fp8_scheme(stated: Mapping[str, object]) -> Scheme:
    """Return the scheme of `quant_method: fp8`: a scale a tensor, or a block where one is given."""
    block = block_in(stated, "weight_block_size")
    return Scheme(
        method="fp8",
        weight_bits=8,
        granularity="tensor" if block is None else "block",
        block=block,
        static_input_scale=stated.get("activation_scheme") == "static",
    )


def fp8_recipe(stated: Mapping[str, object], mapped: NameMap) -> Recipe:
    """Return what `quant_method: fp8` says of each layer (vLLM `Fp8Config.get_quant_method`, 0.8.5 to 0.32)."""
    scheme = fp8_scheme(stated)
    entries = Entries.of(map(mapped, names_in(stated, "ignored_layers", "modules_to_not_convert")))

    def scheme_of(name: LayerName) -> Scheme | None:
        if name.kind not in ("linear", "experts") or is_skipped(name, entries):
            return None
        return scheme

    return Recipe(scheme_of=scheme_of, tells_layers_apart=entries.tell_layers_apart, kv_scales="scales")


def fbgemm_recipe(stated: Mapping[str, object], mapped: NameMap) -> Recipe:
    """Return what `quant_method: fbgemm_fp8` says: a scale an output, and an upper bound of the inputs' scale."""
    scheme = Scheme(method="fp8", weight_bits=8, granularity="channel", origin="fbgemm")
    entries = Entries.of(map(mapped, names_in(stated, "modules_to_not_convert")))

    def scheme_of(name: LayerName) -> Scheme | None:
        return None if name.kind != "linear" or is_skipped(name, entries) else scheme

    return Recipe(scheme_of=scheme_of, tells_layers_apart=entries.tell_layers_apart)


def deepseek_v4_recipe(stated: Mapping[str, object], mapped: NameMap, *, expert_dtype: str) -> Recipe:
    """Return what DeepSeek V4's fp8 says: experts in MXFP4 or NVFP4, and block scales of one byte beside them.

    Source: vLLM `models.deepseek_v4.quant_config.DeepseekV4FP8Config`.
    """
    linear = fp8_scheme(stated)
    experts = linear
    if expert_dtype == "fp4":
        linear = Scheme(method="fp8", weight_bits=8, granularity="block", block=linear.block, scale_bytes=1)
        experts = Scheme(method="mxfp4", weight_bits=4, granularity="group", group_size=32)
        if str(stated.get("moe_quant_algo") or "").upper() == "NVFP4":
            experts = Scheme(
                method="nvfp4",
                weight_bits=4,
                granularity="group",
                group_size=16,
                static_input_scale=True,
                origin="modelopt",
            )
    entries = Entries.of(map(mapped, names_in(stated, "ignored_layers", "modules_to_not_convert")))

    def scheme_of(name: LayerName) -> Scheme | None:
        if name.kind not in ("linear", "experts") or is_skipped(name, entries):
            return None
        return experts if name.kind == "experts" else linear

    return Recipe(scheme_of=scheme_of, tells_layers_apart=entries.tell_layers_apart, kv_scales="scales")
