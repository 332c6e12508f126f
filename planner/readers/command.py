"""A vLLM command or a form -> EngineArgs under vLLM's own names; and EngineArgs -> the command that gives them."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from planner.catalog.flags import Flag, flags
from planner.core.engine import EngineArgs, Version
from planner.core.errors import BadInput
from planner.readers.shell import EXAMPLE, vllm_command
from planner.readers.values import Value, bad_value, read_items, read_truth, read_value, written
from planner.readers.words import Settings, find_flag, parse_words, unknown_flag

HIDDEN = "***"
USAGES = ("server", "offline")
PLACES = {"model", "usage", "environment", "other"}
MEMORY_FIELDS = tuple(field.name for field in fields(EngineArgs) if field.name not in PLACES)
SPECULATION = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}

_SECRET_VARIABLE = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|(?:^|_)KEY(?:_|$)", re.IGNORECASE)


def read_command(text_or_argv: str | Sequence[str], *, version: Version) -> EngineArgs:
    """Return what a `vllm serve` command (shell text, or a list of words) asks of this release.

    Variables set with it are kept in `environment`; API keys and tokens are not. Raises BadInput, naming the flag.
    """
    command = vllm_command(text_or_argv)
    model, settings = parse_words(command.words, version)
    if not model:
        raise BadInput(field="model", message="The command names no model.", fix=EXAMPLE)
    if "$" in model:
        raise BadInput(field="model", message=f"{model} is a variable that is not set here.", fix="write the name out")
    return _engine_args(model, settings, environment=command.environment)


def read_fields(
    given: Mapping[str, object], *, version: Version, model: str = "", environment: Mapping[str, str] | None = None
) -> EngineArgs:
    """Return what flags given by name ask of this release, as a form, a URL or JSON gives them.

    Names take dashes or underscores; "" and None mean "not given". Raises BadInput, naming the flag.
    """
    settings: Settings = {}
    usage = "server"
    for key, value in given.items():
        name = str(key).strip("-").replace("-", "_")
        if value is None or value == "":
            continue
        if name == "model":
            model = model or str(value)
        elif name == "usage":
            usage = _usage(value)
        else:
            _add_field(settings, name, value, version)
    return _engine_args(model, settings, environment=sorted((environment or {}).items()), usage=usage)


def format_command(args: EngineArgs) -> str:
    """Return the command, quoted for a shell and on one line, that `read_command` reads as these arguments."""
    words = [f"{name}={shlex.quote(value)}" for name, value in args.environment]
    words += ["vllm", "serve", shlex.quote(args.model)]
    for name, value in given_fields(args).items():
        words += [shlex.quote(word) for word in _words_of(flags()[name], value)]
    return " ".join(words)


def given_fields(args: EngineArgs) -> dict[str, Value]:
    """Return every flag these arguments set, by vLLM's name: what `read_fields` takes."""
    memory = {name: getattr(args, name) for name in MEMORY_FIELDS if getattr(args, name) is not None}
    return memory | dict(args.other)


def _usage(value: object) -> str:
    if value not in USAGES:
        raise BadInput(field="usage", message=f"{value!r} is not a usage.", fix="give server or offline")
    return str(value)


def _add_field(settings: Settings, name: str, value: object, version: Version) -> None:
    flag = find_flag("--" + name)
    if flag is None or name != flag.name or not flag.lives.holds(version):
        raise unknown_flag("--" + name.replace("_", "-"), version)
    if flag.kind in {"bool", "switch"}:
        _add_truth(settings, flag, read_truth(flag, value), version)
    elif flag.kind in {"list", "append"}:
        settings[name] = read_items(flag, _items(flag, value))
    elif flag.kind == "optional_str" and value is True:
        settings[name] = True
    else:
        settings[name] = read_value(flag, _text(flag, value), version)


def _add_truth(settings: Settings, flag: Flag, truth: bool, version: Version) -> None:
    """A no that the release has no flag for is what it does anyway."""
    if truth or (flag.kind == "bool" and flag.no_form.holds(version)):
        settings[flag.name] = truth


def _items(flag: Flag, value: object) -> list[str]:
    if isinstance(value, list | tuple):
        items = [str(item) for item in value]
    elif flag.item_kind != "str":
        items = re.split(r"[,\s]+", str(value).strip())
    else:
        items = _shell_items(flag, str(value))
    if not items:
        raise bad_value(flag, str(value), "one value or more")
    return items


def _shell_items(flag: Flag, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise bad_value(flag, text, "values with their quotes closed") from None


def _text(flag: Flag, value: object) -> str:
    """Return the word that a command would give for a value from JSON."""
    if isinstance(value, str):
        return value.strip()
    if flag.kind in {"json", "json_or_str"}:
        return _json_text(flag, value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_value(flag, str(value), f"one {'text' if flag.kind == 'str' else 'number'}")
    return str(int(value)) if isinstance(value, float) and value.is_integer() and flag.kind != "float" else str(value)


def _json_text(flag: Flag, value: object) -> str:
    try:
        return written(value)
    except (TypeError, ValueError, RecursionError):
        raise bad_value(flag, str(value), "valid JSON") from None


def _engine_args(
    model: str, settings: Settings, *, environment: Iterable[tuple[str, str]], usage: str = "server"
) -> EngineArgs:
    settings = _with_speculation(settings)
    memory: dict[str, Any] = {name: _kept(value) for name, value in settings.items() if name in MEMORY_FIELDS}
    other = {name: _plain(flags()[name], value) for name, value in settings.items() if name not in MEMORY_FIELDS}
    return EngineArgs(
        model=model,
        usage=usage,
        environment=tuple(_kept_variables(environment)),
        other=tuple(sorted(other.items())),
        **memory,
    )


def _kept_variables(environment: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """What vLLM and CUDA read is in capitals; secrets are known to be set, and no more."""
    for name, value in environment:
        if name.isupper():
            yield name, HIDDEN if _SECRET_VARIABLE.search(name) else value


def _with_speculation(settings: Settings) -> Settings:
    """`--spec-model` and its kin are keys of `--speculative-config` written as flags."""
    short = {key: settings[name] for name, key in SPECULATION.items() if name in settings}
    if not short or "speculative_config" in settings:
        return settings
    rest = {name: value for name, value in settings.items() if name not in SPECULATION}
    return rest | {"speculative_config": written(short)}


def _kept(value: Value) -> Value:
    return _joined(value) if isinstance(value, tuple) and any(isinstance(item, str) for item in value) else value


def _plain(flag: Flag, value: Value) -> str | bool:
    if flag.secret:
        return HIDDEN
    if isinstance(value, bool):
        return value
    return _joined(value) if isinstance(value, tuple) else str(value)


def _joined(items: tuple[int, ...] | tuple[float, ...] | tuple[str, ...]) -> str:
    return shlex.join(str(item) for item in items)


def _words_of(flag: Flag, value: Value) -> list[str]:
    if isinstance(value, bool):
        return [flag.option if value else "--no-" + flag.option[2:]]
    items = _items(flag, value) if flag.kind in {"list", "append"} else [str(value)]
    if flag.kind == "append":
        return [f"{flag.option}={item}" for item in items]
    if len(items) == 1:
        return [f"{flag.option}={items[0]}"] if items[0][:1] in {"-", ""} else [flag.option, items[0]]
    return [flag.option, *items]
