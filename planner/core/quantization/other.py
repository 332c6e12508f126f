"""Checkpoints that quantise experts only, and Quark's."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from planner.core.quantization.names import Entries, LayerName, by_pattern, contains, is_skipped
from planner.core.quantization.recipe import NameMap, Recipe, names_in, object_in, size_in, unplanned
from planner.core.scheme import Scheme


def mxfp4_recipe(*, gpt_oss: bool) -> Recipe:
    """Return what `quant_method: mxfp4` says: experts are in MXFP4, nothing else is (vLLM `Mxfp4Config`)."""
    scheme = Scheme(
        method="mxfp4", weight_bits=4, granularity="group", group_size=32, origin="gpt_oss" if gpt_oss else ""
    )
    return Recipe(scheme_of=lambda name: scheme if name.kind == "experts" else None)


def experts_int8_recipe() -> Recipe:
    """Return what `experts_int8` does: vLLM rounds the experts of any checkpoint to int8 while it loads it."""
    scheme = Scheme(method="int8", weight_bits=8, granularity="channel", made_at_load=True)
    return Recipe(scheme_of=lambda name: scheme if name.kind == "experts" else None)


def quark_recipe(stated: Mapping[str, object], mapped: NameMap) -> Recipe:
    """Return what a Quark config says: a global scheme, others by layer name, and a list of excluded layers.

    Source: vLLM `QuarkConfig._find_matched_config` (0.32).
    """
    excluded = Entries.of(map(mapped, names_in(stated, "exclude")))
    by_name = {mapped(name): entry for name, entry in object_in(stated, "layer_quant_config").items()}
    base = quark_scheme(object_in(stated, "global_quant_config"))

    def scheme_of(name: LayerName) -> Scheme | None:
        if name.kind not in ("linear", "experts") or _is_excluded(name, excluded):
            return None
        for pattern, entry in by_name.items():
            if isinstance(entry, Mapping) and any(_matches(part, pattern) for part in (name.prefix, *name.parts)):
                return quark_scheme(entry)
        return base

    return Recipe(
        scheme_of=scheme_of,
        tells_layers_apart=excluded.tell_layers_apart or bool(by_name),
        kv_scales="scales",
    )


def quark_scheme(entry: Mapping[str, object]) -> Scheme | None:
    """Return how Quark stores the weights of one entry; None where it quantises none."""
    weight = entry.get("weight")
    if isinstance(weight, list):
        weight = weight[0] if len(weight) == 1 else {"dtype": "several"}
    if not isinstance(weight, Mapping):
        return None
    inputs = entry.get("input_tensors")
    static = isinstance(inputs, Mapping) and not inputs.get("is_dynamic")
    match (weight.get("dtype"), weight.get("qscheme")):
        case ("fp8_e4m3", "per_tensor" | "per_channel" as scheme):
            granularity = str(scheme).removeprefix("per_")
            return Scheme(
                method="fp8", weight_bits=8, granularity=granularity, static_input_scale=static, origin="quark"
            )
        case ("int8", "per_tensor" | "per_channel" as scheme):
            granularity = str(scheme).removeprefix("per_")
            return Scheme(
                method="int8", weight_bits=8, granularity=granularity, static_input_scale=static, origin="quark"
            )
        case ("fp4", "per_group") if size_in(weight, "group_size") == 32:
            return Scheme(method="mxfp4", weight_bits=4, granularity="group", group_size=32, origin="quark")
    raise unplanned(f"Quark weights of {weight.get('dtype')} {weight.get('qscheme')} are not planned yet.")


def _is_excluded(name: LayerName, excluded: Entries) -> bool:
    if name.kind == "experts" and any(
        entry == name.prefix or entry.startswith(f"{name.prefix}.") for entry in excluded.about(name.prefix)
    ):
        return True
    return is_skipped(name, excluded, by_pattern)


def _matches(name: str, pattern: str) -> bool:
    return by_pattern(name, pattern) or (not pattern.startswith("re:") and fnmatchcase(name, pattern))


def bitsandbytes_recipe(stated: Mapping[str, object], mapped: NameMap) -> Recipe:
    """Return what bitsandbytes does: linear layers in nf4, or in int8 with a scale an output; experts in neither.

    Source: vLLM `BitsAndBytesConfig` (0.8.5 to 0.27.1, the last with it).
    """
    eight = bool(stated.get("load_in_8bit"))
    scheme = Scheme(method="bitsandbytes", weight_bits=8 if eight else 4, granularity="group", group_size=64)
    skipped = Entries.of(map(mapped, names_in(stated, "llm_int8_skip_modules")))

    def scheme_of(name: LayerName) -> Scheme | None:
        if name.kind == "experts":
            raise unplanned("experts in bitsandbytes are not planned.")
        return None if name.kind != "linear" or is_skipped(name, skipped, contains) else scheme

    return Recipe(scheme_of=scheme_of, tells_layers_apart=skipped.tell_layers_apart)
