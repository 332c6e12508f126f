"""Weight-only integer checkpoints: AWQ, GPTQ, and AutoRound's, which are stored as one of the two."""

import re
from collections.abc import Mapping, Sequence

from planner.core.quantization.names import Entries, LayerName, agreeing, contains, is_skipped
from planner.core.quantization.recipe import (
    NameMap,
    Recipe,
    block_in,
    names_in,
    object_in,
    required_size,
    size_in,
    unplanned,
    wrong,
)
from planner.core.scheme import Scheme

FULL_PRECISION_BITS = 16
REGEX_CHARACTERS = frozenset(r"*+?^$()[]{}|\\")


def awq_recipe(stated: Mapping[str, object], mapped: NameMap) -> Recipe:
    """Return what `quant_method: awq` says of each layer; entries of its list match as parts of names.

    Without a list vLLM reads the tensors' dtypes: every linear layer it builds with the quantisation is taken to be
    quantised. Source: vLLM `AutoAWQConfig` (0.32), `AWQConfig` and `AWQMarlinConfig` before.
    """
    scheme = Scheme(
        method="awq",
        weight_bits=size_in(stated, "bits") or size_in(stated, "w_bit", 4) or 4,
        granularity="group",
        group_size=_group(stated, "group_size", "q_group_size"),
        zero_points=bool(stated.get("zero_point", True)),
    )
    entries = Entries.of(map(mapped, names_in(stated, "modules_to_not_convert")))
    head = bool(stated.get("lm_head"))

    def scheme_of(name: LayerName) -> Scheme | None:
        if not _takes_part(name, head=head) or is_skipped(name, entries, contains):
            return None
        return scheme

    return Recipe(scheme_of=scheme_of, tells_layers_apart=entries.tell_layers_apart)


def gptq_recipe(stated: Mapping[str, object], mapped: NameMap) -> Recipe:
    """Return what `quant_method: gptq` says of each layer: one scheme, overrides of `dynamic`, a list of names.

    Source: vLLM `AutoGPTQConfig`, `utils.gptq_utils` (0.32), `GPTQMarlinConfig` before.
    """
    base = gptq_scheme(stated)
    overrides = tuple(object_in(stated, "dynamic").items())
    quantised = Entries.of(map(mapped, _flat(stated.get("modules_in_block_to_quantize"))))
    head = bool(stated.get("lm_head"))

    def scheme_of(name: LayerName) -> Scheme | None:
        if not _takes_part(name, head=head) or not _is_listed(name, quantised):
            return None
        return _overridden(base, stated, overrides, name.prefix)

    return Recipe(
        scheme_of=scheme_of,
        tells_layers_apart=quantised.tell_layers_apart or bool(overrides),
    )


def gptq_scheme(stated: Mapping[str, object]) -> Scheme:
    """Return the base scheme of a GPTQ checkpoint."""
    group = _group(stated, "group_size")
    return Scheme(
        method="gptq",
        weight_bits=required_size(stated, "bits"),
        granularity="group",
        group_size=group,
        zero_points=not stated.get("sym", True),
        sorts_groups=bool(stated.get("desc_act")) and group is not None,
    )


def autoround_recipe(stated: Mapping[str, object], mapped: NameMap) -> Recipe:
    """Return what `quant_method: auto-round` (or `inc`) says: one scheme, and overrides of `extra_config` by name.

    An entry of 16 bits or more is not quantised; keys with special characters are regular expressions. Source: vLLM
    `quantization.inc.config_parser.INCConfigParser` (0.32).
    """
    entries = {mapped(key): value for key, value in object_in(stated, "extra_config").items()}
    blocks = tuple(mapped(block) for block in _blocks(stated))
    autoround_scheme(stated)

    def scheme_of(name: LayerName) -> Scheme | None:
        override = _override_of(name, entries)
        quantised = any(name.prefix.startswith(block) for block in blocks) if blocks else name.kind != "head"
        if name.kind == "embedding" or (override is None and not quantised):
            return None
        return autoround_scheme({**stated, **(override or {})})

    return Recipe(scheme_of=scheme_of, tells_layers_apart=any(any(c.isdigit() for c in key) for key in entries))


def autoround_scheme(stated: Mapping[str, object]) -> Scheme | None:
    """Return how AutoRound stores one layer: as GPTQ, AWQ, block fp8, MXFP4 or MXFP8; None at 16 bits or more."""
    bits, kind = required_size(stated, "bits"), str(stated.get("data_type") or "int")
    if bits >= FULL_PRECISION_BITS:
        return None
    if "mx_fp" in kind:
        return Scheme(method=f"mxfp{bits}", weight_bits=bits, granularity="group", group_size=32)
    if kind in ("fp", "fp8"):
        return Scheme(method="fp8", weight_bits=8, granularity="block", block=block_in(stated, "group_size"))
    if kind != "int":
        raise unplanned(f"AutoRound weights of data type {kind} are not planned yet.")
    awq = "awq" in f"{stated.get('packing_format') or ''} {stated.get('backend') or ''}"
    return Scheme(
        method="awq" if awq else "gptq",
        weight_bits=bits,
        granularity="group",
        group_size=_group(stated, "group_size"),
        zero_points=awq or not stated.get("sym", True),
    )


def _blocks(stated: Mapping[str, object]) -> tuple[str, ...]:
    value = stated.get("block_name_to_quantize")
    if isinstance(value, str):
        return tuple(block.strip() for block in value.split(","))
    return names_in(stated, "block_name_to_quantize")


def _override_of(name: LayerName, entries: Mapping[str, object]) -> Mapping[str, object] | None:
    """The entry of a layer, of one of its merged projections, or inside its experts; None where there is none."""
    for part in (name.prefix, *name.parts):
        for key, value in entries.items():
            special = any(character in REGEX_CHARACTERS for character in key)
            inside = name.kind == "experts" and key.startswith(name.prefix)
            named = key in (part, f"model.{part}") or part.endswith(f".{key}")
            if (named or inside or (special and re.search(key, part))) and isinstance(value, Mapping):
                return value
    return None


def _overridden(
    base: Scheme, stated: Mapping[str, object], rules: Sequence[tuple[str, object]], prefix: str
) -> Scheme | None:
    """The first rule that matches decides: `-:` leaves the module alone, `+:` (or nothing) changes its numbers."""
    for pattern, values in rules:
        if pattern.startswith("-:"):
            if re.match(pattern[2:], prefix):
                return None
        elif re.match(pattern.removeprefix("+:"), prefix):
            return gptq_scheme({**stated, **values}) if isinstance(values, Mapping) else base
    return base


def _is_listed(name: LayerName, quantised: Entries) -> bool:
    if not quantised.everywhere and not quantised.numbered:
        return True
    listed = quantised.about(name.prefix)
    return agreeing(name, [any(entry in part for entry in listed) for part in name.parts])


def _flat(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise wrong("modules_in_block_to_quantize", value, "a list of module names")
    return tuple(name for item in value for name in ([item] if isinstance(item, str) else _flat(item)))


def _takes_part(name: LayerName, *, head: bool) -> bool:
    return name.kind in ("linear", "experts") or (head and name.kind == "head")


def _group(stated: Mapping[str, object], *keys: str) -> int | None:
    size = next((found for key in keys if (found := size_in(stated, key)) is not None), 128)
    return None if size == -1 else size
