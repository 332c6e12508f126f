"""Which layer is of which kind: the `layer_types` of a config.json, or the pattern that its class repeats."""

from collections.abc import Callable

from planner.core.config_keys import ConfigKeys
from planner.core.errors import BadInput, Unknown

FULL = "full_attention"
SLIDING = "sliding_attention"
LINEAR = "linear_attention"


def layer_types(keys: ConfigKeys, otherwise: Callable[[int], str], *, name: str = "layer_types") -> tuple[str, ...]:
    """Return the kind of each layer: as stated, or `otherwise` of its index.

    Raises BadInput for a list that is shorter than the model.
    """
    layers = keys.required_size("num_hidden_layers")
    stated = texts(keys, name)
    if stated is None:
        return tuple(otherwise(index) for index in range(layers))
    if len(stated) < layers:
        message = f"{name} names {len(stated)} layers of {layers}."
        raise BadInput(field=name, message=message, fix=f"name the kind of every layer in {name}")
    return stated[:layers]


def texts(keys: ConfigKeys, name: str) -> tuple[str, ...] | None:
    """Return a list of names, or None when the key is absent or null."""
    value = keys.value(name)
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise keys.wrong(name, value, "a list of names")
    return tuple(value)


def full_every(period: int) -> Callable[[int], str]:
    """Return the pattern in which every `period`-th layer attends to everything and the others to a window."""
    return lambda index: SLIDING if (index + 1) % period else FULL


def require_kinds(kinds: tuple[str, ...], planned: frozenset[str], *, name: str = "layer_types") -> tuple[str, ...]:
    """Return the kinds; one that the architecture does not have is Unknown."""
    if others := set(kinds) - planned:
        raise Unknown(
            field=name,
            message=f"unknown architecture: layers of kind {', '.join(sorted(others))} are not planned yet.",
            fix=f"plan a model whose {name} are {', '.join(sorted(planned))}",
        )
    return kinds
