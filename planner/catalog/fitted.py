"""The fitted constants of the measured terms: `fit.json`, which `python3 manage.py fit` makes anew from the boots."""

import math
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from planner.core.fit import Fit

PATH = Path(__file__).parent / "fit.json"
SIGNIFICANT_DIGITS = 6


@cache
def fit() -> Fit:
    """Return the fit that the catalog holds."""
    return read_fit(PATH.read_bytes())


def read_fit(content: bytes) -> Fit:
    """Return a fit from its JSON; raises msgspec.ValidationError with the path of the first fault."""
    return msgspec.json.decode(content, type=Fit)


def write_fit(made: Fit) -> bytes:
    """Return a fit as JSON, six significant digits a figure: more would only be noise of the arithmetic."""
    plain = _rounded(msgspec.to_builtins(made, order="sorted"))
    return msgspec.json.format(msgspec.json.encode(plain), indent=1) + b"\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return value
    digits = SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    return int(rounded) if isinstance(value, int) else rounded
