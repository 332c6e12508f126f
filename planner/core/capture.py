"""Which batch sizes get a CUDA graph, and in which mode, as each version decides."""

import json
from collections.abc import Mapping

from planner.core.engine import EngineArgs, EngineFacts, Version
from planner.core.errors import BadInput
from planner.core.hardware import Gpu

LARGEST_CAPTURE = 65536
MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")


def compilation_settings(args: EngineArgs) -> Mapping[str, object]:
    """Return `--compilation-config` as a mapping; a bare number is the level. Raises BadInput on broken JSON."""
    try:
        read = json.loads(args.compilation_config or "{}")
    except json.JSONDecodeError as fault:
        raise BadInput(
            field="compilation_config",
            message=f"not JSON ({fault.msg} at character {fault.pos}).",
            fix='give an object such as {"cudagraph_mode": "PIECEWISE"}',
        ) from None
    return read if isinstance(read, dict) else {"level": read}


def cudagraph_mode(args: EngineArgs, gpu: Gpu, facts: EngineFacts) -> str:
    """Return the mode; FULL_AND_PIECEWISE is the default since 0.11 (vLLM `CompilationConfig.cudagraph_mode`)."""
    if gpu.is_cpu or args.enforce_eager or args.optimization_level == 0:
        return "NONE"
    settings = compilation_settings(args)
    if settings.get("cudagraph_mode"):
        return _known_mode(str(settings["cudagraph_mode"]).upper())
    if settings.get("level") == 0 or settings.get("mode") in (0, "NONE"):
        return "NONE"
    piecewise_only = facts.version < Version(0, 11) or args.optimization_level == 1
    return "PIECEWISE" if piecewise_only else "FULL_AND_PIECEWISE"


def capture_sizes(args: EngineArgs, gpu: Gpu, facts: EngineFacts, tokens: int, seqs: int) -> tuple[int, ...]:
    """Return the batch sizes that get a graph (vLLM `VllmConfig._set_cudagraph_sizes`)."""
    settings = compilation_settings(args)
    listed = args.cudagraph_capture_sizes or _listed_sizes(settings)
    if listed:
        return tuple(sorted({size for size in listed if size <= tokens}))
    largest = _largest_capture(args, gpu, facts, tokens, seqs)
    coarse_from = 256 if facts.version >= Version(0, 11, 1) else largest + 1
    dense = range(1, 33) if args.performance_mode == "interactivity" else (1, 2, 4)
    sizes = {*dense, *range(8, min(coarse_from, largest + 1), 8), *range(coarse_from, largest + 1, 16)}
    if facts.version >= Version(0, 20):
        sizes.add(tokens)
    if facts.version >= Version(0, 29):
        sizes.add(seqs)
    return tuple(sorted(size for size in sizes if size <= largest))


def _listed_sizes(settings: Mapping[str, object]) -> tuple[int, ...]:
    listed = settings.get("cudagraph_capture_sizes") or ()
    if isinstance(listed, list) and all(str(size).isdecimal() and int(size) >= 1 for size in listed):
        return tuple(int(size) for size in listed)
    if not listed:
        return ()
    message = "cudagraph_capture_sizes is no list of whole numbers from 1 up."
    raise BadInput(field="compilation_config", message=message, fix='write {"cudagraph_capture_sizes": [1, 2, 4]}')


def _known_mode(mode: str) -> str:
    if mode in MODES:
        return mode
    raise BadInput(field="compilation_config", message=f"cudagraph_mode {mode}.", fix=f"use one of {', '.join(MODES)}")


def _capturable(asked: int, args: EngineArgs) -> int:
    if 1 <= asked <= LARGEST_CAPTURE:
        return asked
    field = "max_cudagraph_capture_size" if args.max_cudagraph_capture_size else "compilation_config"
    message = f"no graph captures {asked:,} sequences."
    raise BadInput(field=field, message=message, fix=f"give a number from 1 to {LARGEST_CAPTURE:,}")


def _largest_capture(args: EngineArgs, gpu: Gpu, facts: EngineFacts, tokens: int, seqs: int) -> int:
    asked = args.max_cudagraph_capture_size or compilation_settings(args).get("max_cudagraph_capture_size")
    if isinstance(asked, int):
        return min(_capturable(asked, args), tokens)
    if facts.version < Version(0, 10):
        return 512
    wide = facts.version >= Version(0, 28) and gpu.compute_capability is not None and gpu.compute_capability[0] == 10
    return min(2 * seqs, 1024 if wide else 512, tokens)
