"""Weights in the host's memory: what leaves the GPU, what stays there for it, and what each step must move."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.core.decoder import Layer
from planner.core.engine import EngineArgs, Version
from planner.core.offload_request import OffloadRequest
from planner.core.situation import Situation
from planner.core.units import GIB
from planner.core.weight_bytes import module_tensors
from planner.core.weight_rank import is_buffer, rank_of

PREFETCH_SINCE = Version(0, 17)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloaded:
    """Bytes of one rank: on the host, and in the GPU's buffers for them; the first move to the GPU in every step."""

    host_bytes: int
    buffer_bytes: int

    @property
    def saved_bytes(self) -> int:
        """What the GPU has more for other things."""
        return self.host_bytes - self.buffer_bytes


def offload_request(args: EngineArgs, version: Version) -> OffloadRequest | None:
    """Return what the command asks for; None where nothing leaves the GPU.

    Source: vLLM `model_executor.offloader.base.create_offloader` (0.17 on), `set_cpu_offload_max_bytes` before.
    """
    group = int(args.number("offload_group_size") or 0)
    limit = int((args.cpu_offload_gb or 0) * GIB)
    stated = str(args.setting("offload_backend") or "auto") if version >= PREFETCH_SINCE else "uva"
    backend = stated if stated != "auto" else "prefetch" if group else "uva"
    if backend == "prefetch" and group:
        layers, ahead = args.number("offload_num_in_group"), args.number("offload_prefetch_step")
        return OffloadRequest(
            backend="prefetch",
            group_size=group,
            layers=1 if layers is None else int(layers),
            ahead=1 if ahead is None else int(ahead),
        )
    return OffloadRequest(backend="uva", limit_bytes=limit) if backend == "uva" and limit else None


def offloaded(situation: Situation, request: OffloadRequest) -> Offloaded:
    """Return what one rank of a stage keeps on the host.

    Only decoder layers leave, in their order; `uva` stops at the first parameter that reaches the limit.
    Source: vLLM `offloader.uva.UVAOffloader`, `offloader.prefetch.PrefetchOffloader`, `models.utils.make_layers`.
    """
    layers = _layers(situation)
    if request.backend == "uva":
        return Offloaded(host_bytes=_up_to(request.limit_bytes, layers), buffer_bytes=0)
    moved = [
        sum(layer)
        for index, layer in enumerate(layers)
        if index % request.group_size >= request.group_size - request.layers
    ]
    return Offloaded(host_bytes=sum(moved), buffer_bytes=min(request.ahead, len(moved)) * max(moved, default=0))


def _up_to(limit_bytes: int, layers: list[tuple[int, ...]]) -> int:
    held = 0
    for size in (size for layer in layers for size in layer):
        if held >= limit_bytes:
            break
        held += size
    return held


def _layers(situation: Situation) -> list[tuple[int, ...]]:
    """The parameters of each layer of the stage in bytes, as they are created."""
    layout, stage = situation.layout, situation.pp_stage
    start = sum(layout.layers_per_stage[:stage])
    held = situation.model.layers[start : start + layout.layers_per_stage[stage]]
    sizes = {id(layer): tuple(_parameters(layer, situation)) for layer in held}
    return [sizes[id(layer)] for layer in held]


def _parameters(layer: Layer, situation: Situation) -> Iterator[int]:
    rank = rank_of(situation.model, situation.layout, situation.pp_stage, situation.place)
    for module in layer.modules:
        if rank.builds(module) and not is_buffer(module):
            yield from (size for size in module_tensors(module, rank.place).created if size)
