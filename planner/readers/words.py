"""The words after `vllm serve` -> the model and the value of each flag, as that release's own parser reads them."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.catalog.flags import Flag, Option, flags, options
from planner.core.engine import Version
from planner.core.errors import BadInput
from planner.readers.values import Value, bad_value, human_readable_int, read_items, read_json, read_value, written

LEVEL_FLAG = Version(0, 12)  # -O means --optimization-level from here on, --compilation-config before
WORDS_OF_TRUTH = frozenset({"true", "false"})

_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_LONG_NAME = re.compile(r"--[^.=]*")

Settings = dict[str, Value]


@dataclass(slots=True)
class _Reading:
    """What was read so far; `dotted` collects `--flag.key value`, which wins over the same flag given whole."""

    version: Version
    values: Settings = field(default_factory=dict)
    dotted: dict[str, dict[str, object]] = field(default_factory=dict)
    bare: list[str] = field(default_factory=list)
    last_flag: str = ""


def parse_words(words: Sequence[str], version: Version) -> tuple[str, Settings]:
    """Return the model ("" when none is given) and the settings by vLLM's names; the last of a repeated flag wins.

    Raises BadInput for a flag that this release does not have, a value it does not take, or a stray word.
    Source: vLLM `FlexibleArgumentParser.parse_args`.
    """
    reading = _Reading(version=version)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if _is_option(word):
            _read_option(reading, _spelled(word, version), rest)
        else:
            _read_bare(reading, word)
    for name, nested in reading.dotted.items():
        reading.values[name] = written(nested)
    model = reading.values.pop("model", "")
    return (reading.bare[0] if reading.bare else str(model)), reading.values


def find_option(spelling: str, version: Version) -> Option:
    """Return what a spelling means in this release: in full, by a short form, or cut short but unambiguous."""
    known = options(version)
    if spelling in known:
        return known[spelling]
    begun = {option.flag.name: option for text, option in known.items() if text.startswith(spelling)}
    if spelling.startswith("--") and len(spelling) > 3 and len(begun) == 1:
        return next(iter(begun.values()))
    if spelling.startswith("--") and len(begun) > 1 and not find_flag(spelling):
        raise BadInput(
            field=spelling.lstrip("-").replace("-", "_"),
            message=f"{spelling} could be any of {', '.join(sorted(o.flag.option for o in begun.values())[:6])}.",
            fix="write the flag in full",
        )
    raise unknown_flag(spelling, version)


def find_flag(spelling: str) -> Flag | None:
    """Return the flag of any release that is spelt so, `--no-` and short forms included."""
    name = spelling.lstrip("-").replace("-", "_")
    for candidate in (name, name.removeprefix("no_")):
        if candidate in flags():
            return flags()[candidate]
    return next((flag for flag in flags().values() if spelling in dict(flag.also)), None)


def unknown_flag(spelling: str, version: Version) -> BadInput:
    """Return the error for a flag this release does not have: when it existed, or what comes nearest."""
    flag = find_flag(spelling)
    if flag is not None:
        return BadInput(
            field=flag.name,
            message=f"{spelling} is not a flag of vLLM {version}: it exists {flag.span_of(spelling)}.",
            fix=flag.instead or "leave it out, or plan for a release that has it",
        )
    nearest = difflib.get_close_matches(spelling, options(version), n=1, cutoff=0.6)
    return BadInput(
        field=spelling.lstrip("-").replace("-", "_"),
        message=f"{spelling[:80]} is not a flag of vLLM {version}.",
        fix=f"did you mean {nearest[0]}?" if nearest else "leave it out, or look it up with `vllm serve --help=all`",
    )


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not _NEGATIVE_NUMBER.fullmatch(word)


def _spelled(word: str, version: Version) -> str:
    """Return the word with dashes in the flag's name, and `-O3` written out."""
    if word.startswith("--"):
        return _LONG_NAME.sub(lambda name: name[0].replace("_", "-"), word, count=1)
    if word.startswith("-O") and version >= LEVEL_FLAG:
        return "--optimization-level" + _with_equals(word[2:])
    if re.match(r"-O[^.]", word):
        return "-O.level" + _with_equals(word[2:])
    if re.match(r"-[qnr][^=.]", word) and word[:2] in options(version) and word not in options(version):
        return word[:2] + _with_equals(word[2:])
    return word


def _with_equals(value: str) -> str:
    return value if value == "" or value.startswith("=") else "=" + value


def _read_bare(reading: _Reading, word: str) -> None:
    if not reading.bare and not (reading.last_flag and word.lower() in WORDS_OF_TRUTH):
        reading.bare.append(word)
        return
    if word.lower() in WORDS_OF_TRUTH and reading.last_flag:
        raise bad_value(flags()[reading.last_flag], word, "no value: the flag alone, or with --no- in front")
    raise BadInput(
        field="command",
        message=f"The word {word[:80]!r} belongs to no flag.",
        fix="quote a value that has spaces in it, and name one model only",
    )


def _read_option(reading: _Reading, word: str, rest: list[str]) -> None:
    spelling, equals, inline = word.partition("=")
    head, dot, path = spelling.partition(".")
    option = find_option(head, reading.version)
    flag = option.flag
    reading.last_flag = ""
    if dot:
        _read_dotted(reading, flag, path, inline if equals else _next_value(flag, rest))
    elif flag.kind in {"bool", "switch"}:
        if equals:
            raise bad_value(flag, inline, "no value: the flag alone, or with --no- in front")
        reading.values[flag.name] = not option.negated
        reading.last_flag = flag.name
    elif flag.kind == "list":
        reading.values[flag.name] = read_items(flag, [inline] if equals else _next_values(flag, rest))
    elif flag.kind == "optional_str" and not equals and (not rest or _is_option(rest[0])):
        reading.values[flag.name] = True
    else:
        _read_single(reading, flag, inline if equals else _next_value(flag, rest))


def _read_single(reading: _Reading, flag: Flag, text: str) -> None:
    if text in {"", "None"}:  # vLLM's optional types read both as "not given"
        reading.values.pop(flag.name, None)
        return
    value = read_value(flag, text, reading.version)
    earlier = reading.values.get(flag.name, ())
    if flag.kind == "append" and isinstance(earlier, tuple) and isinstance(value, tuple):
        value = (*map(str, earlier), *map(str, value))
    reading.values[flag.name] = value


def _read_dotted(reading: _Reading, flag: Flag, path: str, text: str) -> None:
    if flag.kind not in {"json", "json_or_str"} or not path.strip("+"):
        raise BadInput(
            field=flag.name,
            message=f"{flag.option}.{path} sets a key, but {flag.option} is not given as JSON.",
            fix=f"write {flag.option} VALUE",
        )
    keys = path.removesuffix("+").split(".")
    value: object = text.split(",") if path.endswith("+") else _dotted_value(flag, text, reading.version)
    for key in reversed(keys):
        value = {key: value}
    if isinstance(value, dict):
        _merge(reading.dotted.setdefault(flag.name, {}), value)


def _dotted_value(flag: Flag, text: str, version: Version) -> object:
    try:
        return read_json(flag, text, version)
    except BadInput:
        number = human_readable_int(text)
        return text if number is None else number


def _merge(original: dict[str, object], update: dict[str, object]) -> None:
    for key, value in update.items():
        earlier = original.get(key)
        if isinstance(value, dict) and isinstance(earlier, dict):
            _merge(earlier, value)
        elif isinstance(value, list) and isinstance(earlier, list):
            original[key] = earlier + value
        else:
            original[key] = value


def _next_value(flag: Flag, rest: list[str]) -> str:
    if not rest or _is_option(rest[0]):
        raise bad_value(flag, rest[0] if rest else "nothing", f"a value after {flag.option}")
    return rest.pop(0)


def _next_values(flag: Flag, rest: list[str]) -> list[str]:
    values = [_next_value(flag, rest)]
    while rest and not _is_option(rest[0]):
        values.append(rest.pop(0))
    return values
