"""One flag's value, from the words of a command or from a form or JSON: the same value, or a BadInput that says why."""

import json
import math
import re
from collections.abc import Callable, Mapping

from planner.catalog.flags import Flag
from planner.core.engine import Version
from planner.core.errors import BadInput

LARGEST = 2**63 - 1
AUTO_LENGTH = Version(0, 14)
JSON_SUFFIXES = Version(0, 20)
OBJECTS_ONLY = Version(0, 12)  # before, --compilation-config also took a bare level
TRUE_WORDS = frozenset({"true", "1", "on", "yes"})
FALSE_WORDS = frozenset({"false", "0", "off", "no"})

_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
_INTEGER = re.compile(r"[+-]?\d[\d_]{0,24}")
_QUOTED = re.compile(r'("(?:[^"\\]|\\.)*")')
_BARE_SUFFIXED = re.compile(r"\b\d{1,24}(?:\.\d{1,24})?[kKmMgGtT]\b")
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

Value = bool | int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]


def read_value(flag: Flag, text: str, version: Version) -> Value:
    """Return what this release makes of one word given for a flag that takes a value."""
    allowed = flag.choices_in(version)
    if allowed and text not in allowed:
        elsewhere = dict(flag.choices).get(text)
        came = f" ({text} exists {elsewhere})" if elsewhere else ""
        raise bad_value(flag, text, f"one of {', '.join(allowed)}{came}")
    value = _READERS[flag.kind](flag, text, version)
    _check_bounds(flag, text, value)
    return value


def read_items(flag: Flag, words: list[str]) -> Value:
    """Return the words given for a flag that takes several."""
    if flag.item_kind == "int":
        sizes = tuple(_int(flag, word) for word in words)
        for word, size in zip(words, sizes, strict=True):
            _check_bounds(flag, word, size)
        return sizes
    if flag.item_kind == "float":
        return tuple(_float(flag, word) for word in words)
    return tuple(words)


def read_truth(flag: Flag, value: object) -> bool:
    """Return a yes or no given by a form, a URL or JSON."""
    word = str(value).strip().lower()
    if isinstance(value, bool | int | str) and word in TRUE_WORDS | FALSE_WORDS:
        return word in TRUE_WORDS
    raise bad_value(flag, str(value), "true or false")


def human_readable_int(text: str) -> int | None:
    """Return `40k` (40,000), `40K` (40,960), `25.6k` or a plain number; None when it is none of these.

    Source: vLLM `human_readable_int`: a capital letter is a power of 1024 and takes no decimals.
    """
    text = text.strip()
    match = _SUFFIXED.fullmatch(text) if len(text) <= 32 else None
    if match is None:
        return _bounded(int(text)) if _INTEGER.fullmatch(text) else None
    number, suffix = match.groups()
    if suffix in _DECIMAL:
        return _bounded(int(float(number) * _DECIMAL[suffix]))
    return _bounded(int(number) * _BINARY[suffix]) if number.isdigit() else None


def read_json(flag: Flag, text: str, version: Version) -> object:
    """Return the JSON given for a flag; from 0.20 bare numbers in it may carry suffixes (`80m`)."""
    if version >= JSON_SUFFIXES:
        text = _expanded(text)
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as fault:
        where = f" (at character {fault.pos})" if isinstance(fault, json.JSONDecodeError) else ""
        raise bad_value(flag, text, f'valid JSON{where}, quoted for the shell: \'{{"key": "value"}}\'') from None


def written(value: object) -> str:
    """Return JSON in the one form that arguments keep."""
    return json.dumps(value, allow_nan=False)


def bad_value(flag: Flag, text: str, allowed: str) -> BadInput:
    """Return the error that names the flag, the value and what is allowed."""
    shown = text if len(text) <= 80 else text[:77] + "..."
    return BadInput(field=flag.name, message=f"{flag.option} does not take {shown!r}.", fix=f"give {allowed}")


def _check_bounds(flag: Flag, text: str, value: Value) -> None:
    if not isinstance(value, int | float):
        return
    if flag.minimum is not None and value < flag.minimum:
        raise bad_value(flag, text, f"{flag.minimum} or more")
    if flag.maximum is not None and value > flag.maximum:
        raise bad_value(flag, text, f"{flag.maximum:,} or less")


def _bounded(number: int) -> int | None:
    return number if abs(number) <= LARGEST else None


def _int(flag: Flag, text: str) -> int:
    number = _bounded(int(text)) if _INTEGER.fullmatch(text.strip()) and not text.strip().endswith("_") else None
    if number is None:
        raise bad_value(flag, text, "a whole number")
    return number


def _float(flag: Flag, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise bad_value(flag, text, "a number such as 0.9")
    return number


def _size(flag: Flag, text: str, version: Version) -> int:
    if not flag.suffixes.holds(version):
        return _int(flag, text)
    number = human_readable_int(text)
    if number is None:
        raise bad_value(flag, text, "a whole number, or one with a suffix: 40k is 40,000 and 40K is 40,960")
    return number


def _length(flag: Flag, text: str, version: Version) -> int | str:
    """Return a length, or "auto" for what vLLM fits to the memory it finds."""
    if text.strip().lower() not in {"-1", "auto"}:
        return _size(flag, text, version)
    if version < AUTO_LENGTH:
        raise bad_value(flag, text, f"a length in tokens (fitting it to memory came with vLLM {AUTO_LENGTH})")
    return "auto"


def _level(flag: Flag, text: str) -> int:
    if text not in {"0", "1", "2", "3"}:
        raise bad_value(flag, text, "a level from 0 to 3")
    return int(text)


def _json(flag: Flag, text: str, version: Version) -> str:
    value = read_json(flag, text, version)
    is_bare_level = flag.name == "compilation_config" and version < OBJECTS_ONLY
    if not isinstance(value, dict | list) and not is_bare_level:
        raise bad_value(flag, text, 'a JSON object, such as {"key": "value"}')
    return written(value)


def _json_or_str(flag: Flag, text: str, version: Version) -> str:
    is_object = text.strip().startswith("{") and text.strip().endswith("}")
    return written(read_json(flag, text, version)) if is_object else text


def _expanded(text: str) -> str:
    parts = _QUOTED.split(text)
    parts[::2] = [_BARE_SUFFIXED.sub(_plain_number, part) for part in parts[::2]]
    return "".join(parts)


def _plain_number(match: re.Match[str]) -> str:
    number = human_readable_int(match[0])
    return match[0] if number is None else str(number)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large")
    return number


_READERS: Mapping[str, Callable[[Flag, str, Version], Value]] = {
    "int": lambda flag, text, _: _int(flag, text),
    "float": lambda flag, text, _: _float(flag, text),
    "str": lambda _, text, __: text,
    "append": lambda _, text, __: (text,),
    "optional_str": lambda _, text, __: text,
    "size": _size,
    "length": _length,
    "level": lambda flag, text, _: _level(flag, text),
    "json": _json,
    "json_or_str": _json_or_str,
}
