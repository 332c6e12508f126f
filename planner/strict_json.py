"""JSON from strangers: read to the end or refused with the place of the fault, and safe to store in any database."""

import json
from collections.abc import Callable, Iterator

from planner.core.errors import BadInput

DEEPEST = 32
LARGEST_NUMBER = 10**40
_TOO_DEEP = f"is nested more than {DEEPEST} levels deep."


def read_json(data: bytes, *, field: str = "body", parse_float: Callable[[str], object] = float) -> object:
    """Return the value of UTF-8 JSON text; `Infinity` and `NaN`, which model configurations hold, come as text."""
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=str, parse_float=parse_float)
    except UnicodeDecodeError as error:
        raise _bad(field, f"is not UTF-8 text (byte {error.start}).", "save it as UTF-8") from error
    except json.JSONDecodeError as error:
        message = f"is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        raise _bad(field, message, "correct that place") from error
    except RecursionError as error:
        raise _bad(field, _TOO_DEEP, "send a flatter object") from error
    except ValueError as error:
        raise _bad(field, "holds a number with thousands of digits.", "give a number of a usual size") from error
    return storable(value, field=field)


def float_or_text(text: str) -> object:
    """Return a number, or its text where it stands for infinity as `1e308` does in some model configurations."""
    number = float(text)
    return number if abs(number) < LARGEST_NUMBER else text


def storable(value: object, *, field: str) -> object:
    """Return the value if every database can keep it, else raise BadInput with the path of the fault."""
    for path, message, fix in _faults(value, "", 0):
        raise _bad(f"{field}.{path}" if path and field != "body" else path or field, message, fix)
    return value


def _bad(field: str, message: str, fix: str) -> BadInput:
    return BadInput(field=field, message=message, fix=fix)


def _faults(value: object, path: str, depth: int) -> Iterator[tuple[str, str, str]]:
    if depth > DEEPEST:
        yield path, _TOO_DEEP, "send a flatter object"
    elif isinstance(value, str):
        yield from _text_faults(value, path)
    elif isinstance(value, int | float) and not abs(value) < LARGEST_NUMBER:
        yield path, "is beyond any number that a plan can hold.", "give a number of a usual size"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _text_faults(key, path)
            yield from _faults(item, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, f"{path}[{index}]", depth + 1)


def _text_faults(text: str, path: str) -> Iterator[tuple[str, str, str]]:
    if "\x00" in text:
        yield path, "holds a NUL character.", "remove it"
    elif not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        yield path, "holds half of a surrogate pair.", "send proper Unicode text"
