"""A model's `config.json` -> a mapping, with what lies beside it and what the command overrides."""

import json
from collections.abc import Mapping
from typing import Any

from planner.core.engine import EngineArgs
from planner.core.errors import BadInput
from planner.strict_json import float_or_text, read_json

LARGEST_CONFIG_BYTES = 8 * 1024 * 1024  # quantised ones list millions of bytes of excluded layers
ROPE_NAMES = ("rope_scaling", "rope_parameters")

Config = Mapping[str, Any]


def read_config(data: bytes, *, quantization: bytes | None = None) -> dict[str, Any]:
    """Return the configuration in a `config.json`, with an `hf_quant_config.json` beside it as `quantization_config`.

    `Infinity` and `NaN`, which Python writes into such files, come as text. Raises BadInput with the place of a fault.
    """
    config = _object(data, "config")
    if quantization is not None and "quantization_config" not in config:
        config["quantization_config"] = _object(quantization, "hf_quant_config")
    return config


def overrides_of(args: EngineArgs) -> dict[str, Any]:
    """Return what the command changes in the model's configuration: `--hf-overrides`, and until 0.11 `--rope-*`."""
    given = dict(args.other)
    overrides: dict[str, Any] = {}
    if "rope_scaling" in given:
        overrides["rope_scaling"] = _override("rope_scaling", str(given["rope_scaling"]))
    if "rope_theta" in given:
        overrides["rope_theta"] = float(given["rope_theta"])
    if "hf_overrides" in given:
        overrides |= _override("hf_overrides", str(given["hf_overrides"]))
    return overrides


def overridden(config: Config, overrides: Config) -> dict[str, Any]:
    """Return the configuration with the overrides in it.

    A nested configuration (`text_config` ...) is changed key by key, anything else is replaced; the two names of the
    RoPE parameters stand for one thing. Source: vLLM `ModelConfig._apply_dict_overrides`.
    """
    changed = {name: value for name, value in config.items() if not _displaced(name, overrides)}
    for name, value in overrides.items():
        nested = config.get(name) if name.endswith("_config") else None
        both = isinstance(nested, Mapping) and isinstance(value, Mapping)
        changed[name] = _merged({**nested}, value) if nested is not None and both else value
    return changed


def _displaced(name: str, overrides: Config) -> bool:
    return name in ROPE_NAMES and any(other in overrides for other in ROPE_NAMES)


def _merged(nested: Config, changes: Config) -> dict[str, Any]:
    merged = dict(nested)
    for name, value in changes.items():
        inner = merged.get(name)
        merged[name] = _merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return merged


def _override(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BadInput(
            field=name,
            message=f"--{name.replace('_', '-')} does not take {text[:80]!r}.",
            fix='give a JSON object, such as {"max_position_embeddings": 32768}',
        )
    return value


def _object(data: bytes, field: str) -> dict[str, Any]:
    if len(data) > LARGEST_CONFIG_BYTES:
        raise BadInput(
            field=field,
            message=f"more than {LARGEST_CONFIG_BYTES:,} bytes are no model configuration.",
            fix="give the config.json of a model, not its weights",
        )
    value = read_json(data, field=field, parse_float=float_or_text)
    if not isinstance(value, dict):
        raise BadInput(field=field, message="The file holds no JSON object.", fix="give the config.json of a model")
    return value
