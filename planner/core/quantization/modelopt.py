"""NVIDIA ModelOpt checkpoints: one algorithm for every layer, or one a layer (MIXED_PRECISION)."""

import re
from collections.abc import Mapping
from fnmatch import fnmatch

from planner.core.quantization.names import Entries, LayerName, agreeing, is_skipped, with_stars
from planner.core.quantization.recipe import NameMap, Recipe, names_in, object_in, size_in, unplanned
from planner.core.scheme import Scheme

MIXED = "MIXED_PRECISION"
NUMBER, ANY_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)"), "*"
TOWER_WORDS = ("vision_tower", "vision_model", "vit_large_projector")
WHOLE_LAYERS = re.compile(r"layers\.\*(?:\.\*|\*|\.)?$")  # abridged, and only the layers without experts are meant
NESTED_NAMES = (("language_model.model.", "model.language_model."), ("model.language_model.", "language_model.model."))


def modelopt_part(stated: Mapping[str, object]) -> Mapping[str, object]:
    """Return the object that states the algorithm: that of hf_quant_config.json lies one level deeper."""
    return object_in(stated, "quantization") or stated


def modelopt_algorithm(stated: Mapping[str, object]) -> str:
    """Return the algorithm in capitals; NVFP4 without quantised inputs is W4A16_NVFP4."""
    algorithm = str(modelopt_part(stated).get("quant_algo") or "").upper()
    groups = [group for group in object_in(stated, "config_groups").values() if isinstance(group, Mapping)]
    weight_only = bool(groups) and all(group.get("input_activations") is None for group in groups)
    return "W4A16_NVFP4" if algorithm == "NVFP4" and weight_only else algorithm


def modelopt_scheme(algorithm: str, group_size: int | None) -> Scheme:
    """Return how ModelOpt stores a layer of one algorithm.

    Source: vLLM `quantization.modelopt.resolve` (0.32). Raises Unknown for others.
    """
    size = group_size or 16
    match algorithm:
        case "FP8":
            return Scheme(method="fp8", weight_bits=8, static_input_scale=True, origin="modelopt")
        case "FP8_PER_CHANNEL_PER_TOKEN":
            return Scheme(method="fp8", weight_bits=8, granularity="channel", origin="modelopt")
        case "FP8_PB_WO" | "FP8_BLOCK_SCALES":
            return Scheme(method="fp8", weight_bits=8, granularity="block", block=(128, 128), origin="modelopt")
        case "NVFP4" | "W4A16_NVFP4":
            return Scheme(
                method="nvfp4",
                weight_bits=4,
                granularity="group",
                group_size=size,
                static_input_scale=True,
                weight_only=algorithm == "W4A16_NVFP4",
                origin="modelopt",
            )
        case "MXFP8":
            return Scheme(method="mxfp8", weight_bits=8, granularity="group", group_size=32, origin="modelopt")
    raise unplanned(f"ModelOpt weights of algorithm {algorithm or 'none stated'} are not planned yet.")


def modelopt_recipe(stated: Mapping[str, object], mapped: NameMap) -> Recipe:
    """Return what a ModelOpt config says of each layer.

    Excluded names match whole, as parts and as shell patterns. Source: vLLM `ModelOptQuantConfigBase`,
    `ModelOptMixedPrecisionConfig` (0.17 to 0.32).
    """
    part, algorithm = modelopt_part(stated), modelopt_algorithm(stated)
    excluded = Entries.of(map(mapped, _split_stars(names_in(part, "exclude_modules", "ignore", "ignored_layers"))))
    if algorithm == MIXED:
        return _mixed_recipe(part, mapped, excluded)
    scheme = modelopt_scheme(algorithm, size_in(part, "group_size"))

    def scheme_of(name: LayerName) -> Scheme | None:
        if name.kind == "embedding" or _is_excluded(name, excluded) or any(w in name.prefix for w in TOWER_WORDS):
            return None
        return scheme

    return Recipe(
        scheme_of=scheme_of,
        tells_layers_apart=excluded.tell_layers_apart,
        kv_scales="scales",
        latent_kv_scales=True,
    )


def _mixed_recipe(part: Mapping[str, object], mapped: NameMap, excluded: Entries) -> Recipe:
    layers = object_in(part, "quantized_layers")
    if not layers:
        raise unplanned("MIXED_PRECISION without quantized_layers (they are in hf_quant_config.json) says no layer.")
    algorithms = {mapped(name): _algorithm(entry) for name, entry in layers.items()}
    sizes = [size for entry in layers.values() if isinstance(entry, Mapping) and (size := size_in(entry, "group_size"))]
    group_size = size_in(part, "group_size") or next(iter(sizes), None)
    parents = _parents(algorithms)
    schemes: dict[str, Scheme] = {}

    def scheme_of(name: LayerName) -> Scheme | None:
        if name.kind == "embedding" or _is_excluded(name, excluded):
            return None
        algorithm = _algorithm_of(name, algorithms, parents)
        if not algorithm:
            return None
        return schemes.setdefault(algorithm, modelopt_scheme(algorithm, group_size))

    declares_kv = bool(part.get("kv_cache_quant_algo") or part.get("kv_cache_scheme"))
    return Recipe(scheme_of=scheme_of, tells_layers_apart=True, kv_scales="scales" if declares_kv else "")


def _algorithm(entry: object) -> str:
    return str(entry.get("quant_algo") or "").upper() if isinstance(entry, Mapping) else ""


def _parents(algorithms: Mapping[str, str]) -> dict[str, str]:
    """Return, for every module that contains a listed one, the algorithm of the first of them."""
    found: dict[str, str] = {}
    for name, algorithm in algorithms.items():
        parent = name.rpartition(".")[0]
        while parent and parent not in found:
            found[parent] = algorithm
            parent = parent.rpartition(".")[0]
    return found


def _algorithm_of(name: LayerName, algorithms: Mapping[str, str], parents: Mapping[str, str]) -> str:
    """The name itself, its merged projections, what it contains, and for experts what their block contains."""
    for prefix in _spellings(name.prefix):
        if prefix in algorithms:
            return algorithms[prefix]
    found = {algorithms[s]: None for part in name.parts for s in _spellings(part) if s in algorithms}
    if found:
        agreeing(name, [len(found) == 1])
        return next(iter(found))
    for prefix in _spellings(name.prefix):
        if prefix in parents:
            return parents[prefix]
    if name.prefix.endswith(".experts"):
        return parents.get(name.prefix.removesuffix(".experts"), "")
    return ""


def _spellings(prefix: str) -> tuple[str, ...]:
    """The names under which a layer may be listed; a list that was shortened has stars for numbers."""
    spellings = [prefix]
    if prefix.endswith(".lm_head"):
        spellings.append("lm_head")
    spellings += [other + prefix[len(one) :] for one, other in NESTED_NAMES if prefix.startswith(one)]
    return (*spellings, *map(with_stars, spellings))


def _split_stars(names: tuple[str, ...]) -> list[str]:
    """`module*` means the module and everything in it, and nothing that merely begins alike."""
    split: list[str] = []
    for name in names:
        bare = name[:-1]
        split += [bare, f"{bare}.*"] if name.endswith("*") and bare and not bare.endswith(".") else [name]
    return split


def _is_excluded(name: LayerName, excluded: Entries) -> bool:
    if is_skipped(name, excluded):
        return True
    if name.kind == "experts":
        excluded = Entries.of(entry for entry in excluded.about(name.prefix) if not WHOLE_LAYERS.search(entry))
    inner = name.prefix.removeprefix("language_model.")
    for entry in excluded.about(name.prefix):
        if entry != name.prefix and (entry in name.prefix or entry in inner):
            return True
        if fnmatch(name.prefix, entry):
            return True
    return False
