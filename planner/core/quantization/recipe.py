"""What a checkpoint's quantisation says of each layer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.core.errors import BadInput, Unknown
from planner.core.quantization.names import LayerName
from planner.core.scheme import Scheme

CONFIG_FIX = "correct quantization_config in config.json, or leave it out to plan unquantised weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Which scheme each layer has.

    `tells_layers_apart` is False when the answer is the same in every decoder layer. `kv_scales` says which fp32 or
    model-dtype placeholders attention layers get while the checkpoint loads: "" for none, "scales" (four scalars of
    the model's dtype) or "scales and zero points" (three fp32 scales, three zero points); `latent_kv_scales` says
    whether MLA layers get them too.
    """

    scheme_of: Callable[[LayerName], Scheme | None]
    tells_layers_apart: bool = False
    kv_scales: str = ""
    latent_kv_scales: bool = False


NameMap = Callable[[str], str]


def names_in(stated: Mapping[str, object], *keys: str) -> tuple[str, ...]:
    """Return the list of names under the first of several keys that has any; BadInput when it is no such list."""
    for key in keys:
        value = stated.get(key)
        if not value:
            continue
        if isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(name, str) for name in value):
            return tuple(value)
        raise wrong(key, value, "a list of module names")
    return ()


def size_in(stated: Mapping[str, object], key: str, default: int | None = None) -> int | None:
    """Return a whole number under a key, or the default; BadInput for anything else."""
    value = stated.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(key, value, "a whole number")
    return value


def required_size(stated: Mapping[str, object], key: str) -> int:
    """Return a whole number under a key; its absence is BadInput."""
    value = size_in(stated, key)
    if value is None:
        raise BadInput(
            field="quantization_config", message=f"quantization_config does not state {key}.", fix=CONFIG_FIX
        )
    return value


def object_in(stated: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return the object under a key, {} when absent; BadInput for anything else."""
    value = stated.get(key)
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise wrong(key, value, "an object")


def block_in(stated: Mapping[str, object], key: str) -> tuple[int, int] | None:
    """Return a block of (outputs, inputs) under a key, None when absent."""
    value = stated.get(key)
    if value is None:
        return None
    if isinstance(value, Sequence) and len(value) == 2 and all(type(size) is int and size > 0 for size in value):
        return (value[0], value[1])
    raise wrong(key, value, "two whole numbers")


def wrong(key: str, value: object, wanted: str) -> BadInput:
    """Return the error for a value of the wrong type, naming its key."""
    return BadInput(
        field="quantization_config",
        message=f"quantization_config's {key} is {value!r}; it must be {wanted}.",
        fix=CONFIG_FIX,
    )


def unplanned(what: str) -> Unknown:
    """Return the error for weights whose layout is not known here."""
    return Unknown(
        field="quantization_config",
        message=f"unknown quantisation: {what}",
        fix="plan another quantisation of the model, or its unquantised weights",
    )
