"""`manage.py estimate`: one vLLM command in, verdict and memory out; no database, no service, no Django.

Exit codes: 0 it fits; 1 it does not fit, or vLLM refuses it; 2 the question is malformed; 3 not known; 70 our fault.
"""

import argparse
import io
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from planner import catalog
from planner.answer_text import answer_text, error_document, error_text
from planner.core.advice import what_would_help
from planner.core.document import document, unknown_document
from planner.core.errors import BadInput, Unknown
from planner.core.estimate import estimate
from planner.inputs import count_of, gib_of, request_classes
from planner.query import request_from_text
from planner.questions import ask
from planner.readers.command import read_command
from planner.readers.config import LARGEST_CONFIG_BYTES, read_config

EXIT_CODES = {"fits": 0, "does_not_fit": 1, "refused": 1, "unknown": 3}
BAD_INPUT, INTERNAL_FAULT, INTERRUPTED = 2, 70, 130
REPORT = "This is a fault of the planner. Please report it with the command and the output of --traceback."

HELP = "Plan one vLLM command: does it fit, what fills the memory, how many requests run at once."
EXAMPLE = "manage.py estimate --gpu a100-sxm4-80gb --gpu-count 4 -- vllm serve MODEL --tensor-parallel-size 4"


class _Parser(argparse.ArgumentParser):
    """Raises instead of ending the process, so that `--json` answers in JSON here too."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(field="arguments", message=f"{message}.", fix=f"write it as {EXAMPLE}")


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--json", action="store_true", help="answer with the JSON document that the API gives")
    add("--gpu", metavar="NAME", help="a catalog name (a100-sxm4-80gb) or what nvidia-smi prints")
    add("--gpu-memory-gib", metavar="GIB", help="total memory as CUDA reports it; for cpu, the host's RAM")
    add("--gpu-count", metavar="N", help="how many GPUs there are at most")
    add("--free-gib", metavar="GIB", help="memory free at start, when others use the GPU too")
    add("--vllm-version", metavar="V", help="the release to plan for (default: the newest known)")
    add("--config", metavar="PATH", help="a config.json or its folder; the model is then only a name")
    add(
        "--request",
        "--requests",
        metavar="NAME:SHARE:PROMPT:OUTPUT[:PREFIX[:CONCURRENT]]",
        action="append",
        default=[],
        help="a class of requests, in tokens; may be repeated",
    )
    add("--what-would-help", action="store_true", help="try one-flag changes and rank them")
    add("--why", action="store_true", help="show each term's formula, source and evidence")
    add("--traceback", action="store_true", help="show where an internal fault happened")
    add("command", nargs="*", metavar="-- vllm serve MODEL ...", help="the vLLM command, with that release's flags")


def main(argv: Sequence[str], stdout: TextIO | None = None, stderr: TextIO | None = None) -> int:
    """Answer one command line and return the exit code."""
    out, err = stdout or _any_text(sys.stdout), stderr or _any_text(sys.stderr)
    as_json = "--json" in _own(argv)
    try:
        options = _options(argv)
        answered = _answer(options)
        out.write(_json(answered) if options.json else answer_text(answered, why=options.why))
        return EXIT_CODES[answered["verdict"]]
    except Unknown as error:
        out.write(_json(unknown_document(error)) if as_json else f"Not known. {error_text(error)}\n")
        return EXIT_CODES["unknown"]
    except BadInput as error:
        (out if as_json else err).write(_json(error_document(error)) if as_json else f"{error_text(error)}\n")
        return BAD_INPUT
    except (KeyboardInterrupt, BrokenPipeError):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 -- the last net: nothing of ours may end in a bare traceback
        return _fault(error, out, err, as_json=as_json, shown="--traceback" in _own(argv))


def _any_text(stream: TextIO) -> TextIO:
    """A terminal of another encoding shows what it cannot write as escapes, and is no fault."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _own(argv: Sequence[str]) -> Sequence[str]:
    return argv[: list(argv).index("--")] if "--" in argv else argv


def options_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's own options, those before `--`."""
    parser = _Parser(prog="manage.py estimate", description=HELP, epilog=f"Example: {EXAMPLE}", allow_abbrev=False)
    _add_options(parser)
    return parser


def _options(argv: Sequence[str]) -> argparse.Namespace:
    own = _own(argv)
    options = options_parser().parse_args(own)
    options.command += argv[len(own) + 1 :]
    if not options.gpu:
        raise BadInput(field="gpu", message="No GPU is named.", fix="give --gpu NAME, such as --gpu a100-sxm4-80gb")
    return options


def _answer(options: argparse.Namespace) -> dict[str, Any]:
    given = {"gpu_memory_gib": options.gpu_memory_gib, "free_gib": options.free_gib}
    gpu = catalog.find_gpu(options.gpu)
    version = catalog.engine_facts(options.vllm_version).version
    words = options.command[0] if len(options.command) == 1 else options.command
    args = read_command(words, version=version)
    question = ask(
        gpu=gpu,
        args=args,
        config=_config(options.config, args.model),
        gpu_count=count_of(options.gpu_count),
        gpu_memory_gib=gib_of(given, "gpu_memory_gib"),
        vllm_version=options.vllm_version,
        free_gib=gib_of(given, "free_gib"),
        requests=request_classes([request_from_text(text) for text in options.request]),
    )
    answer = estimate(question)
    return document(question, answer, what_would_help(question, answer) if options.what_would_help else None)


def _config(path: str | None, model: str) -> dict[str, Any] | None:
    """Return the configuration to plan with, or None where the catalog has the model."""
    if path is not None:
        return _config_at(Path(path).expanduser())
    if (Path(model) / "config.json").is_file():
        return _config_at(Path(model))
    try:
        catalog.find_config(model)
    except Unknown as missing:
        return _config_from_hub(model, missing)
    return None


def _config_at(path: Path) -> dict[str, Any]:
    file = path / "config.json" if path.is_dir() else path
    beside = file.with_name("hf_quant_config.json")
    try:
        return read_config(_head(file), quantization=_head(beside) if beside.is_file() else None)
    except OSError as error:
        message = f"{file} cannot be read ({error.strerror})."
        raise BadInput(field="config", message=message, fix="give a config.json or a folder with one") from None


def _head(file: Path) -> bytes:
    """No more than tells that a file is too large: what is named may have no end."""
    with file.open("rb") as opened:
        return opened.read(LARGEST_CONFIG_BYTES + 1)


def _config_from_hub(model: str, missing: Unknown) -> dict[str, Any]:
    from planner.hub import fetch_config  # the hub's client takes longer to import than a plan takes to make

    try:
        return fetch_config(model)
    except (Unknown, BadInput) as unreachable:
        raise Unknown(
            field="model",
            message=f"{model} is not in the catalog ({missing.fix}). {unreachable.message}",
            fix=f"{unreachable.fix}; --config PATH plans any model offline",
        ) from None


def _fault(error: Exception, out: TextIO, err: TextIO, *, as_json: bool, shown: bool) -> int:
    message = f"{type(error).__name__}: {error}"
    if as_json:
        out.write(_json({"error": {"field": "", "message": message, "fix": REPORT}}))
    err.write(f"{message}. {REPORT}\n")
    if shown:
        err.write("".join(traceback.format_exception(error)))
    return INTERNAL_FAULT


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"
