"""Which batch sizes get a CUDA graph, and in which mode, as each version decides."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.core.engine import EngineArgs, EngineFacts, Version
from planner.core.errors import BadInput
from planner.core.hardware import Gpu
from planner.core.traits import Traits

LARGEST_CAPTURE = 65536
MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
COMPILED = (3, "3", "VLLM_COMPILE", None)
WHOLE_GRAPHS_SINCE = Version(0, 11)
FIRST_WITH_A_MAXIMUM = Version(0, 11, 1)
GPT_OSS = "GptOssForCausalLM"
FINEST_LATENCY_SIZES = 32
UNCAPTURABLE = ("deepep_high_throughput", "moonep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What the sizes depend on: tokens of a step, sequences, tokens that one of them decodes at once."""

    tokens: int
    seqs: int
    query_tokens: int = 1
    architecture: str = ""


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


def cudagraph_mode(args: EngineArgs, gpu: Gpu, facts: EngineFacts, traits: Traits) -> str:
    """Return the mode in which graphs are captured in the end.

    Source: vLLM `VllmConfig.__post_init__` and `CompilationConfig.resolve_cudagraph_mode_and_sizes`, 0.8.5 to 0.33.
    """
    if gpu.is_cpu or args.enforce_eager or args.optimization_level == 0:
        return "NONE"
    if traits.experts and (args.data_parallel_size or 1) > 1 and args.setting("all2all_backend") in UNCAPTURABLE:
        return "NONE"
    mode = _asked_mode(args, facts, traits)
    if traits.encoder_decoder and mode not in ("NONE", "FULL_DECODE_ONLY"):
        mode = "FULL_DECODE_ONLY" if facts.version >= FIRST_WITH_A_MAXIMUM else "PIECEWISE"
    if mode == "FULL_AND_PIECEWISE" and _only_piecewise(gpu, facts, traits):
        return "PIECEWISE"
    return mode


def _asked_mode(args: EngineArgs, facts: EngineFacts, traits: Traits) -> str:
    settings = compilation_settings(args)
    stated = settings.get("cudagraph_mode")
    mode = _known_mode(str(stated).upper()) if stated else _default_mode(args, facts, traits)
    if settings.get("level", settings.get("mode")) in COMPILED:
        return mode
    if facts.version < Version(0, 30):
        return "NONE" if "PIECEWISE" in mode else mode
    return {"FULL_AND_PIECEWISE": "FULL_DECODE_ONLY", "PIECEWISE": "NONE"}.get(mode, mode)


def _default_mode(args: EngineArgs, facts: EngineFacts, traits: Traits) -> str:
    hybrid_first = traits.has_states and facts.version >= Version(0, 10, 1)
    if args.optimization_level == 1 or not (hybrid_first or facts.version >= WHOLE_GRAPHS_SINCE):
        return "PIECEWISE"
    return "FULL_AND_PIECEWISE"


def _only_piecewise(gpu: Gpu, facts: EngineFacts, traits: Traits) -> bool:
    """Attention that no graph can hold: chunked local attention, and latents on Triton's kernel until 0.21."""
    triton_latent = traits.latent and not traits.sparse and (gpu.compute_capability or (9, 0))[0] not in (9, 10)
    return traits.chunked or (triton_latent and facts.version < Version(0, 22))


def capture_sizes(args: EngineArgs, gpu: Gpu, facts: EngineFacts, batch: Batch) -> tuple[int, ...]:
    """Return the batch sizes that get a graph (vLLM `VllmConfig._set_cudagraph_sizes`, 0.8.5 to 0.33)."""
    listed = args.cudagraph_capture_sizes or _listed_sizes(args)
    if listed:
        return tuple(sorted({size for size in listed if size <= batch.tokens}))
    asked = _asked_maximum(args)
    forced = asked or _forced_maximum(facts, batch)
    largest = forced or _default_maximum(gpu, facts, batch)
    if facts.version < FIRST_WITH_A_MAXIMUM:
        return _kept(_older_sizes(largest, stepped=forced is not None and asked is None), batch.tokens)
    largest = min(largest, batch.tokens)
    sizes = set(_strided(largest, dense=args.performance_mode == "interactivity"))
    if facts.version >= Version(0, 20, 1):
        sizes.add(batch.tokens)
    if facts.version >= Version(0, 29) and not forced:
        ceiling = _ceiling(gpu, facts)
        sizes.update(count * batch.query_tokens for count in _request_counts(batch, ceiling))
    return _kept(sizes, largest)


def _kept(sizes: Iterable[int], largest: int) -> tuple[int, ...]:
    return tuple(sorted({size for size in sizes if size <= largest}))


def _strided(largest: int, *, dense: bool = False) -> Iterable[int]:
    """1, 2, 4, then every 8th up to 256 and every 16th beyond; each of the first 32 where latency counts."""
    first = range(1, FINEST_LATENCY_SIZES + 1) if dense else (1, 2, 4)
    return (*first, *range(8, min(256, largest + 1), 8), *range(256, largest + 1, 16))


def _older_sizes(largest: int, *, stepped: bool) -> Iterable[int]:
    """Until 0.11.0: every 8th, and 1, 2 and 4 whatever the maximum."""
    return _strided(largest) if stepped else (1, 2, 4, *range(8, largest + 1, 8))


def _request_counts(batch: Batch, ceiling: int) -> Iterable[int]:
    """Since 0.29 decoding gets graphs of its own counts: every sequence at once, and with drafts the strides too."""
    most = min(batch.seqs, ceiling) if batch.query_tokens > 1 else batch.seqs
    return (*_kept(_strided(most), most), most) if batch.query_tokens > 1 else (most,)


def _listed_sizes(args: EngineArgs) -> tuple[int, ...]:
    older = str(args.setting("cuda_graph_sizes") or "").split()
    listed = compilation_settings(args).get("cudagraph_capture_sizes") or (older if len(older) > 1 else ())
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


def asked_maximum(args: EngineArgs) -> int | None:
    """Return the largest size that the command names, None where it leaves it open."""
    asked = args.max_cudagraph_capture_size or compilation_settings(args).get("max_cudagraph_capture_size")
    return asked if isinstance(asked, int) else None


def _asked_maximum(args: EngineArgs) -> int | None:
    asked = asked_maximum(args)
    if asked is not None:
        return _capturable(asked, args)
    older = args.number("cuda_graph_sizes")
    return None if older is None else _capturable(int(older), args)


def _capturable(asked: int, args: EngineArgs) -> int:
    if 1 <= asked <= LARGEST_CAPTURE:
        return asked
    field = "max_cudagraph_capture_size" if args.max_cudagraph_capture_size else "compilation_config"
    message = f"no graph captures {asked:,} sequences."
    raise BadInput(field=field, message=message, fix=f"give a number from 1 to {LARGEST_CAPTURE:,}")


def _forced_maximum(facts: EngineFacts, batch: Batch) -> int | None:
    """vLLM `GptOssForCausalLMConfig` asks for more than other models get, since 0.10.1."""
    if batch.architecture != GPT_OSS or facts.version < Version(0, 10, 1):
        return None
    return 992 if facts.version == Version(0, 11) else 1024


def _ceiling(gpu: Gpu, facts: EngineFacts) -> int:
    capability = gpu.compute_capability
    return 1024 if facts.version >= Version(0, 28) and capability is not None and capability[0] == 10 else 512


def _default_maximum(gpu: Gpu, facts: EngineFacts, batch: Batch) -> int:
    if facts.version < Version(0, 10):
        return 512
    drafted = batch.query_tokens if facts.version >= Version(0, 13) else 1
    return min(2 * batch.seqs * drafted, _ceiling(gpu, facts))
