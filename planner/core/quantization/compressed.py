"""compressed-tensors checkpoints: groups of targets, each with its own way to store weights."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.core.quantization.names import Entries, LayerName, agreeing, by_pattern, is_skipped
from planner.core.quantization.recipe import NameMap, Recipe, block_in, names_in, object_in, size_in, unplanned
from planner.core.scheme import Scheme

MODULE_CLASSES = {"linear": "Linear", "experts": "Linear", "head": "ParallelLMHead", "embedding": "Embedding"}
EXPERT_PROJECTIONS = ("gate_proj", "up_proj", "down_proj")
ACTIVATION_FORMATS = ("naive-quantized", "int-quantized", "float-quantized", "nvfp4-pack-quantized")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One target of a group: a name, a pattern or a class of modules, and how what it matches is stored."""

    name: str
    scheme: Scheme


def compressed_recipe(stated: Mapping[str, object], mapped: NameMap) -> Recipe:
    """Return what a compressed-tensors config says of each layer.

    The ignore list comes first, then the first target that matches the name, then one that matches all projections
    merged in it, then the class of the module. Raises Unknown for layouts that are not planned. Source: vLLM
    `CompressedTensorsConfig.get_scheme_dict`, `compressed_tensors.utils` (0.8.5 to 0.32).
    """
    ignored = Entries.of(_mapped(name, mapped) for name in names_in(stated, "ignore"))
    targets = tuple(_targets(stated, mapped))
    paths = Entries.of(target.name for target in targets)

    def scheme_of(name: LayerName) -> Scheme | None:
        if is_skipped(_as_listed(name), ignored, by_pattern):
            return None
        return _match(_as_listed(name), targets)

    return Recipe(
        scheme_of=scheme_of,
        tells_layers_apart=ignored.tell_layers_apart or paths.tell_layers_apart,
        kv_scales="scales and zero points",
    )


def compressed_scheme(group: Mapping[str, object], format_name: str) -> Scheme | None:
    """Return how one group stores its weights; None where it quantises none.

    Source: vLLM `CompressedTensorsConfig._get_scheme_from_parts` (0.32).
    """
    weights, inputs = object_in(group, "weights"), object_in(group, "input_activations")
    if not weights:
        return None
    bits, kind = size_in(weights, "num_bits", 8) or 8, str(weights.get("type") or "int")
    strategy, size = _strategy(weights), size_in(weights, "group_size")
    static = bool(inputs) and not inputs.get("dynamic")
    if kind == "float":
        return _float_scheme(bits, strategy, size, weights, static=static, weight_only=not inputs)
    if kind == "int" and (not inputs or format_name not in ACTIVATION_FORMATS) and format_name == "pack-quantized":
        if inputs:
            raise unplanned(f"compressed-tensors W{bits}A{inputs.get('num_bits')} weights are not planned yet.")
        return Scheme(
            method="pack",
            weight_bits=bits,
            granularity="group",
            group_size=size if strategy == "group" else None,
            zero_points=weights.get("symmetric") is False,
            origin="compressed-tensors",
        )
    if kind == "int" and bits == 8 and inputs and strategy in ("channel", "tensor"):
        asymmetric = inputs.get("symmetric") is False
        return Scheme(
            method="int8",
            weight_bits=8,
            granularity=strategy,
            static_input_scale=static,
            zero_points=static and asymmetric,
            origin="compressed-tensors",
        )
    raise unplanned(f"compressed-tensors weights of type {kind}, {bits} bits, {format_name} are not planned yet.")


def _float_scheme(
    bits: int, strategy: str, size: int | None, weights: Mapping[str, object], *, static: bool, weight_only: bool
) -> Scheme:
    origin = "compressed-tensors"
    match (bits, strategy, size):
        case (4, "tensor_group", 16):
            return Scheme(
                method="nvfp4",
                weight_bits=4,
                granularity="group",
                group_size=16,
                origin=origin,
                static_input_scale=not weight_only,
            )
        case (4, "group", 32):
            return Scheme(method="mxfp4", weight_bits=4, granularity="group", group_size=32, origin=origin)
        case (8, "group", 32):
            return Scheme(method="mxfp8", weight_bits=8, granularity="group", group_size=32, origin=origin)
        case (8, "tensor" | "channel" | "block", _):
            block = block_in(weights, "block_structure") or (128, 128)
            return Scheme(
                method="fp8",
                weight_bits=8,
                granularity=strategy,
                block=block if strategy == "block" else None,
                static_input_scale=static,
                origin=origin,
            )
    raise unplanned(f"compressed-tensors float weights of {bits} bits by {strategy} {size or ''} are not planned yet.")


def _strategy(weights: Mapping[str, object]) -> str:
    """What shares a scale; omitted, the group size tells (compressed-tensors `QuantizationArgs`)."""
    if stated := weights.get("strategy"):
        return str(stated)
    size = size_in(weights, "group_size")
    if size is None:
        return "tensor"
    return "channel" if size == -1 else "group"


def _targets(stated: Mapping[str, object], mapped: NameMap) -> list[Target]:
    found = []
    for group in object_in(stated, "config_groups").values():
        if not isinstance(group, Mapping):
            continue
        names = names_in(group, "targets")
        if len(names) == 1 and names[0].endswith("Attention"):
            continue
        scheme = compressed_scheme(group, str(group.get("format") or stated.get("format") or ""))
        if scheme is not None:
            found += [Target(name=_mapped(name, mapped), scheme=scheme) for name in names]
    return found


def _mapped(name: str, mapped: NameMap) -> str:
    """Only paths are renamed: neither patterns nor names of classes."""
    return mapped(name) if "." in name and not name.startswith("re:") else name


def _as_listed(name: LayerName) -> LayerName:
    """Experts are looked up by the projections of the first of them."""
    if name.kind != "experts":
        return name
    first = f"{name.prefix}.0"
    return LayerName(prefix=f"{first}.experts", kind="experts", shards=EXPERT_PROJECTIONS)


def _match(name: LayerName, targets: tuple[Target, ...]) -> Scheme | None:
    whole = [] if name.kind == "experts" else [t for t in targets if by_pattern(name.prefix, t.name)]
    if whole:
        return whole[0].scheme
    if name.is_merged:
        parts = [next((t for t in targets if by_pattern(part, t.name)), None) for part in name.parts]
        if all(parts) or (name.kind != "experts" and any(parts) and agreeing(name, parts)):
            return parts[0].scheme if parts[0] else None
    wanted = MODULE_CLASSES[name.kind]
    return next((t.scheme for t in targets if t.name == wanted or t.name.lower() in wanted.lower()), None)
