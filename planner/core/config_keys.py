"""Typed reading of a Hugging Face config.json: keys omitted fall back to the class defaults, wrong types are named."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from planner.core.errors import BadInput

NUMBER_KEYS_FIX = "correct the value in config.json"


@dataclass(frozen=True, slots=True)
class ConfigKeys:
    """The keys of one config.json under their canonical names.

    `names` maps a canonical name to the spelling that the model type prefers (GPT-2's `n_embd` for `hidden_size`);
    `defaults` are those of the model type's configuration class. A key that is present with null counts as given: it
    hides the default, as it does in a configuration class, and reads as None.
    """

    config: Mapping[str, object]
    names: Mapping[str, str]
    defaults: Mapping[str, object]

    def spelling(self, name: str) -> str:
        """Return the key that holds a canonical name in this config."""
        other = self.names.get(name, name)
        return other if other in self.config or name not in self.config else name

    def value(self, name: str) -> object:
        """Return the raw value of a canonical name, its class default, or None."""
        key = self.spelling(name)
        return self.config[key] if key in self.config else self.defaults.get(name)

    def has(self, name: str) -> bool:
        """Whether the config or its class states the key with something else than null."""
        return self.value(name) is not None

    def flag(self, name: str) -> bool:
        """Return a yes or no; an absent key is no."""
        value = self.value(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.wrong(name, value, "true or false")

    def any_flag(self, names: str) -> bool:
        """Return whether one of several flags, separated by `|`, is set."""
        return any(self.flag(name) for name in names.split("|"))

    def size(self, name: str) -> int | None:
        """Return a whole number of at least one, or None when the key is absent or null."""
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(name, value, "a whole number")
        if value < 1:
            raise self.wrong(name, value, "at least 1")
        return value

    def required_size(self, name: str) -> int:
        """Return a whole number of at least one; its absence is BadInput."""
        value = self.size(name)
        if value is None:
            key = self.spelling(name)
            raise BadInput(field=key, message=f"config.json does not state {key}.", fix=f"add {key} to config.json")
        return value

    def number(self, name: str) -> float | None:
        """Return a finite number, or None when the key is absent or null."""
        value = self.value(name)
        return None if value is None else finite(self.spelling(name), value)

    def text(self, name: str) -> str | None:
        """Return text, or None when the key is absent or null."""
        value = self.value(name)
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(name, value, "text")

    def mapping(self, name: str) -> Mapping[str, object] | None:
        """Return an object, or None when the key is absent or null."""
        value = self.value(name)
        if value is None or isinstance(value, Mapping):
            return value
        raise self.wrong(name, value, "an object")

    def wrong(self, name: str, value: object, wanted: str) -> BadInput:
        """Return the error for a value of the wrong type, naming its key."""
        key = self.spelling(name)
        return BadInput(field=key, message=f"{key} is {value!r}; it must be {wanted}.", fix=NUMBER_KEYS_FIX)


def finite(key: str, value: object) -> float:
    """Return a JSON number as a finite float; anything else, Infinity and NaN included, is BadInput naming the key."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadInput(field=key, message=f"{key} is {value!r}; it must be a number.", fix=NUMBER_KEYS_FIX)
    return float(value)
