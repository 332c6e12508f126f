"""A JSON body or a URL as it came from somebody: each field read, or a BadInput that names it."""

import difflib
import math
from collections.abc import Mapping
from typing import Any

from planner import catalog
from planner.core.capacity import RequestClass
from planner.core.engine import EngineArgs, Version
from planner.core.errors import BadInput
from planner.readers.command import given_fields, read_command, read_fields

Inputs = Mapping[str, Any]

INPUT_NAMES = (
    "model",
    "gpu",
    "gpu_count",
    "gpu_memory_gib",
    "free_gib",
    "vllm_version",
    "config",
    "args",
    "command",
    "environment",
    "requests",
    "include",
)
INCLUDABLE = ("help",)
MOST_GPUS = 1_000_000
MOST_GIB = 1_000_000.0
MOST_CLASSES = 50
MOST_TOKENS = 10**9
MOST_CONCURRENT = 10**5
SMALLEST_SHARE, LARGEST_SHARE = 1e-6, 1e6


def args_of(inputs: Inputs) -> EngineArgs:
    """Return the vLLM command that the inputs describe: `command`, with `args`, `model` and `environment` over it."""
    version = version_of(inputs)
    given: dict[str, Any] = dict(mapping_of(inputs, "args") or {})
    environment = _environment(mapping_of(inputs, "environment") or {})
    model = text_of(inputs, "model") or ""
    command = text_of(inputs, "command")
    if command:
        read = read_command(command, version=version)
        model = model or read.model
        given = {**given_fields(read), **given}
        environment = {**dict(read.environment), **environment}
    args = read_fields(given, version=version, model=model, environment=environment)
    if not args.model:
        raise BadInput(field="model", message="No model is given.", fix="name a model, such as Qwen/Qwen3-8B")
    return args


def version_of(inputs: Inputs) -> Version:
    """Return the vLLM release the inputs ask for; the newest known when they name none."""
    return catalog.engine_facts(text_of(inputs, "vllm_version")).version


def request_classes(given: object) -> tuple[RequestClass, ...]:
    """Return the request mix of a JSON body: a list of objects with the fields of RequestClass."""
    if given is None:
        return ()
    if not isinstance(given, list | tuple) or len(given) > MOST_CLASSES:
        raise _bad("requests", "is not a list of request classes", f"give a list of at most {MOST_CLASSES}")
    classes = tuple(_request_class(row, number) for number, row in enumerate(given, start=1))
    if len({kind.name for kind in classes}) < len(classes):
        raise _bad("requests", "two classes have the same name", "name each differently")
    if classes and not any(kind.share for kind in classes):
        raise _bad("requests", "the shares are all 0", "give at least one class a share above 0")
    return classes


def gib_of(inputs: Inputs, name: str) -> float | None:
    """Return a positive, finite number of GiB, or None when it is not given."""
    value = inputs.get(name)
    if value is None or value == "":
        return None
    try:
        gib = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        gib = math.nan
    if not 0 < gib <= MOST_GIB:
        raise _bad(name, f"{str(value)[:80]!r} is not a size in GiB", "give a number above 0, such as 79.25")
    return gib


def known_names(inputs: Inputs) -> None:
    """Raise BadInput for a name that is no input."""
    if not isinstance(inputs, Mapping):
        raise _bad("body", "is not an object", 'give {"model": ..., "gpu": ...}')
    for name in inputs:
        if name not in INPUT_NAMES:
            near = difflib.get_close_matches(str(name), INPUT_NAMES, n=1)
            hint = f"did you mean {near[0]}?" if near else "vLLM's flags belong into args"
            raise _bad(str(name)[:80], "is not an input", f"{hint} Known: {', '.join(INPUT_NAMES)}")


def check_included(given: object) -> None:
    """Raise BadInput for a part that no answer has."""
    parts = given if isinstance(given, list | tuple) else [] if given is None else [given]
    for part in parts:
        if part not in INCLUDABLE:
            raise _bad("include", f"{str(part)[:80]!r} is no part of an answer", 'give ["help"] or leave it out')


def required(inputs: Inputs, name: str, what: str) -> str:
    """Return a text that must be there."""
    text = text_of(inputs, name)
    if not text:
        raise _bad(name, "is not given", f"give {what}")
    return text


def text_of(inputs: Inputs, name: str) -> str | None:
    """Return a text, or None when it is empty or not given."""
    value = inputs.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _bad(name, f"{str(value)[:80]!r} is not text", "give it in quotes")
    return value.strip() or None


def mapping_of(inputs: Inputs, name: str) -> Mapping[str, Any] | None:
    """Return an object, or None when it is not given."""
    value = inputs.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise _bad(name, "is not an object", 'give it as {"name": value}')
    return value


def _environment(given: Mapping[str, Any]) -> dict[str, str]:
    for name, value in given.items():
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise _bad("environment", f"{name} is not text", "give each variable's value in quotes")
    return {str(name): str(value) for name, value in given.items()}


def count_of(given: object) -> int | None:
    """Return a number of GPUs, or None when it is not given."""
    if given is None or given == "":
        return None
    return _whole("gpu_count", given, least=1, most=MOST_GPUS)


def _request_class(row: object, number: int) -> RequestClass:
    if not isinstance(row, Mapping):
        raise _bad("requests", "one is not an object", "give name, share, prompt_tokens and output_tokens")
    known = {"name", "share", "prompt_tokens", "output_tokens", "shared_prefix_tokens", "concurrent"}
    for name in row:
        if name not in known:
            raise _bad(
                "requests", f"{str(name)[:80]!r} is no part of a request class", "give " + ", ".join(sorted(known))
            )
    prompt = _whole("requests", row.get("prompt_tokens"), least=1, most=MOST_TOKENS)
    prefix = _whole("requests", row.get("shared_prefix_tokens") or 0, least=0, most=prompt)
    concurrent = row.get("concurrent")
    return RequestClass(
        name=str(row.get("name") or f"request {number}")[:100],
        share=_share(row.get("share", 1.0)),
        prompt_tokens=prompt,
        output_tokens=_whole("requests", row.get("output_tokens"), least=0, most=MOST_TOKENS),
        shared_prefix_tokens=prefix,
        concurrent=None if concurrent is None else _whole("requests", concurrent, least=1, most=MOST_CONCURRENT),
    )


def _share(given: object) -> float:
    try:
        share = float(given) if isinstance(given, int | float | str) and not isinstance(given, bool) else math.nan
    except (ValueError, OverflowError):
        share = math.nan
    if share != 0 and not SMALLEST_SHARE <= share <= LARGEST_SHARE:
        raise _bad("requests", f"{str(given)[:80]!r} is not a share", "give a number such as 0.8")
    return share


def _whole(field: str, given: object, *, least: int, most: int) -> int:
    text = str(given).strip()
    whole = isinstance(given, int | str) and not isinstance(given, bool) and len(text) < 20 and text.isdecimal()
    if not whole or not least <= int(text) <= most:
        raise _bad(
            field, f"{str(given)[:80]!r} is not a whole number from {least:,} to {most:,}", "correct that number"
        )
    return int(text)


def _bad(field: str, message: str, fix: str) -> BadInput:
    return BadInput(field=field, message=message[:1].upper() + message[1:] + ".", fix=fix)
