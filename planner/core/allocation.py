"""What PyTorch's allocator adds to large weight tensors: it takes multiples of 2 MiB and does not always split them.

The log's "Model loading took" contains it; the parameters themselves do not.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from planner.core.engine import Version
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.modules import Module
from planner.core.place import Place
from planner.core.sameness import Same
from planner.core.situation import Situation
from planner.core.units import MIB, round_up
from planner.core.weight_bytes import module_tensors
from planner.core.weight_rank import Rank, is_buffer, rank_of

LARGE_TENSOR_BYTES = 10 * MIB  # PyTorch c10/cuda CUDACachingAllocator: kMinLargeAlloc
SEGMENT_STEP_BYTES = 2 * MIB  # kRoundLarge
LEAST_REST_BYTES = MIB  # kSmallSize: a rest of no more than this is not split off
UNSPLIT_TENSOR_BYTES = 20 * MIB  # max_split_size_mb, which vLLM sets while it loads since 0.21
UNSPLIT_SINCE = Version(0, 21)


def rounding_bytes(situation: Situation) -> int:
    """Return the bytes that the weights of one rank take beyond their own size; exact for the large tensors.

    A tensor of 10 MiB or more gets a segment rounded up to 2 MiB; what is over is given back only when it exceeds
    1 MiB, and since 0.21 not at all for tensors of 20 MiB or more.
    """
    return _rounding_bytes(Same(situation.model), situation.layout, situation.pp_stage, situation.place)


@lru_cache(maxsize=512)
def _rounding_bytes(model: Same[Model], layout: Layout, pp_stage: int, place: Place) -> int:
    rank = rank_of(model.held, layout, pp_stage, place)
    sizes = (*_layer_tensors(rank), *((size, 1) for size in _tensors(rank, rank.end_modules())))
    return sum(count * _rest(size, place) for size, count in sizes)


def layer_tensors(situation: Situation) -> Iterator[tuple[int, int]]:
    """Return the bytes of each tensor of the different layers of one rank, with how often it comes."""
    return _layer_tensors(_rank(situation))


def _layer_tensors(rank: Rank) -> Iterator[tuple[int, int]]:
    for layer, count in rank.layers:
        yield from ((size, count) for size in _tensors(rank, layer.modules))


def end_tensors(situation: Situation) -> Iterator[int]:
    """Return the bytes of embedding and head, and of what else stands at the ends that this stage holds."""
    rank = _rank(situation)
    yield from _tensors(rank, rank.end_modules())


def _rank(situation: Situation) -> Rank:
    return rank_of(situation.model, situation.layout, situation.pp_stage, situation.place)


def _tensors(rank: Rank, modules: Iterable[Module]) -> Iterator[int]:
    for module in modules:
        if rank.builds(module) and not is_buffer(module):
            yield from module_tensors(module, rank.place).kept


def _rest(size_bytes: int, place: Place) -> int:
    if size_bytes < LARGE_TENSOR_BYTES:
        return 0
    rest = round_up(size_bytes, SEGMENT_STEP_BYTES) - size_bytes
    unsplit = place.runs(UNSPLIT_SINCE) and size_bytes >= UNSPLIT_TENSOR_BYTES
    return rest if unsplit or rest <= LEAST_REST_BYTES else 0
