"""Ask a real vLLM's `vllm serve` parser: a list of words a line on stdin, what it makes of them a line on stdout.

Runs inside the engine's own interpreter. The first line of the answer holds every spelling the parser knows; each
further one the settings (as JSON where they are plain, else as text), or `refused` with the parser's own words.
"""

import contextlib
import io
import json
import os
import sys
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", VLLM_LOGGING_LEVEL="ERROR")

from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser


def plain(value: Any) -> Any:
    """Return the value if JSON has it, else its text."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return str(value)
    return value


def answer(parser: FlexibleArgumentParser, words: list[str]) -> dict[str, Any]:
    """Return what the parser makes of the words after `vllm serve`."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            settings = vars(parser.parse_args(words))
    except SystemExit:
        return {"refused": said.getvalue()[-300:]}
    return {name: plain(value) for name, value in settings.items()}


def main() -> None:
    """Answer every line."""
    parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
    spellings = sorted(option for action in parser._actions for option in action.option_strings)
    sys.stdout.write(json.dumps(spellings) + "\n")
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(parser, json.loads(line))) + "\n")


if __name__ == "__main__":
    main()
