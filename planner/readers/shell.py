"""A pasted shell text -> the words of the vLLM command in it, and the variables set with it."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from planner.core.errors import BadInput

LONGEST_COMMAND = 64 * 1024
SERVER_MODULE = "vllm.entrypoints.openai.api_server"
SERVER_IMAGE = re.compile(r"(?:\S+/)?vllm-openai(?:[:@]\S+)?")
EXAMPLE = "write it as: vllm serve MODEL --tensor-parallel-size 4"

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|([A-Za-z_]\w*))")
_END = "\N{END OF TRANSMISSION}"
_SHELL = re.compile(
    r"""(?P<literal>'[^']*'|"(?:\\.|[^"\\])*"|\\[^\s])  # quoted or escaped: as it is
      |(?P<gap>\\[ \t]*\r?\n|^[ \t]*\#[^\n]*)          # a continued line, a comment
      |(?P<end>(?:(?<!\S)\d+(?=[<>]))?[;&|<>]+)        # a separator or a redirection
      |(?P<dash>(?<!\S)[–—](?=[A-Za-z]))               # what word processors make of two hyphens
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_PLAIN = {"gap": " ", "end": f" {_END} ", "dash": "--"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """The words after `vllm serve`, and the environment in force there; names sorted, the last value wins."""

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


def vllm_command(text_or_argv: str | Sequence[str]) -> ShellCommand:
    """Find `vllm serve ...`, the API server module or a run of its image in a shell text or a list of words.

    What stands in front (nohup, exec, sudo, uv run ...) is passed over, apart from variables; a pipe, `;` or `&`
    ends the command. Raises BadInput when there is no such command or the quoting is broken.
    """
    words = _split(text_or_argv) if isinstance(text_or_argv, str) else [str(word) for word in text_or_argv]
    start = _start(words)
    environment = _assignments(words[:start])
    body = words[start : words.index(_END, start)] if _END in words[start:] else words[start:]
    return ShellCommand(
        words=tuple(_expand(word, environment) for word in body), environment=tuple(sorted(environment.items()))
    )


def _split(text: str) -> list[str]:
    if len(text) > LONGEST_COMMAND:
        raise _bad(f"longer than {LONGEST_COMMAND:,} characters.", "paste the vllm command alone")
    try:
        return shlex.split(_SHELL.sub(_plain, text))
    except ValueError as fault:
        raise _bad(f"{str(fault).lower()}.", "close the quotation, or leave out the last backslash") from None


def _plain(found: re.Match[str]) -> str:
    return found["literal"] or _PLAIN[found.lastgroup or "gap"]


def _start(words: list[str]) -> int:
    """Return where the arguments begin: after `vllm serve`, the server module or its image."""
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if PurePosixPath(word).name == "vllm" and following == "serve":
            return place + 2
        if word == "-m" and following == SERVER_MODULE:
            return place + 2
        if SERVER_IMAGE.fullmatch(word):
            return place + 1
    raise _bad("neither `vllm serve` nor the API server module is in it.", EXAMPLE)


def _assignments(words: list[str]) -> dict[str, str]:
    """Read `VAR=x`, `export VAR=x` and `env VAR=x`, each expanding those before it."""
    environment: dict[str, str] = {}
    for word in words:
        if match := _ASSIGNMENT.fullmatch(word):
            environment[match[1]] = _expand(match[2], environment)
    return environment


def _expand(word: str, environment: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda found: environment.get(found[1] or found[2], found[0]), word)


def _bad(message: str, fix: str) -> BadInput:
    return BadInput(field="command", message=f"The command cannot be read: {message}", fix=fix)
