"""A workbench address -> the inputs it holds, and back: the query is the whole state of a question."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from planner.core.errors import BadInput
from planner.inputs import Inputs, args_of
from planner.readers.command import given_fields
from planner.strict_json import read_json

ABOUT_THE_MACHINE = ("model", "gpu", "gpu_count", "gpu_memory_gib", "free_gib", "vllm_version")
REQUEST_PARTS = ("name", "share", "prompt_tokens", "output_tokens", "shared_prefix_tokens", "concurrent")
REQUEST_FORM = "write it as name:share:prompt:output[:prefix[:concurrent]], such as chat:0.8:1200:300"
IGNORED = frozenset({"from"})  # which plan an edit comes from; the page's own matter

Query = Mapping[str, Any]


def inputs_from_query(query: Query) -> dict[str, Any]:
    """Return the inputs of an address: a Django QueryDict, or a mapping to texts or lists of texts.

    vLLM's flags stand under their own names, variables of the environment in capitals, each request class as
    `request=name:share:prompt:output[:prefix[:concurrent]]`. Raises BadInput, naming the field.
    """
    inputs: dict[str, Any] = {}
    args: dict[str, Any] = {}
    environment: dict[str, str] = {}
    for name, values in _lists(query):
        if name == "request":
            inputs["requests"] = [request_from_text(value) for value in values]
        elif name in ABOUT_THE_MACHINE or name == "command":
            inputs[name] = values[-1]
        elif name == "config":
            inputs[name] = read_json(values[-1].encode(), field="config")
        elif name == "include":
            inputs[name] = values
        elif name.isupper():
            environment[name] = values[-1]
        else:
            args[name] = values[-1] if len(values) == 1 else values
    return inputs | {key: value for key, value in (("args", args), ("environment", environment)) if value}


def query_from_inputs(inputs: Inputs) -> str:
    """Return the query of an address that gives these inputs: names in a fixed order, a command taken apart."""
    plain = normalized(inputs)
    pairs = [(name, _text(plain[name])) for name in ABOUT_THE_MACHINE if name in plain]
    pairs += [(name, _text(value)) for name, value in plain.get("args", {}).items()]
    pairs += list(plain.get("environment", {}).items())
    pairs += [("request", _request_text(row)) for row in plain.get("requests", ())]
    if "config" in plain:
        pairs.append(("config", json.dumps(plain["config"], separators=(",", ":"))))
    return urlencode(pairs, safe="/:")


def normalized(inputs: Inputs) -> dict[str, Any]:
    """Return the inputs in their one lasting form: a command taken apart into flags, no secrets, nothing empty."""
    args = args_of(inputs)
    flags = {name: list(value) if isinstance(value, tuple) else value for name, value in given_fields(args).items()}
    if args.usage != "server":
        flags["usage"] = args.usage
    kept = {name: inputs[name] for name in (*ABOUT_THE_MACHINE, "config", "requests") if inputs.get(name)}
    found = {**kept, "model": args.model, "args": flags, "environment": dict(args.environment)}
    return {name: value for name, value in found.items() if value}


def _lists(query: Query) -> list[tuple[str, list[str]]]:
    """Return each name with its texts, without what is empty or ignored."""
    items = query.lists() if hasattr(query, "lists") else query.items()
    texts = (
        (name, [values] if isinstance(values, str) else [str(value) for value in values]) for name, values in items
    )
    filled = ((name, [value.strip() for value in values if value.strip()]) for name, values in texts)
    return [(name, values) for name, values in filled if values and name not in IGNORED]


def request_from_text(text: str) -> dict[str, Any]:
    """Return one request class written as `name:share:prompt:output[:prefix[:concurrent]]`, its parts still text."""
    parts = text.split(":")
    if not 4 <= len(parts) <= len(REQUEST_PARTS):
        raise BadInput(field="requests", message=f"{text[:80]!r} is not a request class.", fix=REQUEST_FORM)
    return {name: part.strip() for name, part in zip(REQUEST_PARTS, parts, strict=False) if part.strip()}


def _request_text(row: Mapping[str, Any]) -> str:
    parts = ["" if row.get(name) is None else str(row[name]).replace(":", " ") for name in REQUEST_PARTS]
    return ":".join(parts).rstrip(":")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(map(str, value))
    return str(value)
