"""What PyTorch's allocator adds to large weight tensors: it takes multiples of 2 MiB and does not always split them.

The log's "Model loading took" contains it; the parameters themselves do not.
"""

from collections.abc import Iterable, Iterator

from planner.core.engine import Version
from planner.core.model import Model
from planner.core.modules import Linear, Module, Split
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
    sizes = (*layer_tensors(situation), *((size, 1) for size in end_tensors(situation)))
    return sum(count * _rest(size, situation.facts.version) for size, count in sizes)


def layer_tensors(situation: Situation) -> Iterator[tuple[int, int]]:
    """Return the bytes of each tensor of the different layers of one rank, with how often it comes."""
    rank = _rank(situation)
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


def gated_mlp(model: Model) -> bool:
    """Whether the MLP has a gate beside its upward projection."""
    return any(
        len(module.shards) > 1
        for layer in model.layers[:1]
        for module in layer.modules
        if isinstance(module, Linear) and module.name.startswith("mlp.") and module.split is Split.COLUMN
    )


def _rest(size_bytes: int, version: Version) -> int:
    if size_bytes < LARGE_TENSOR_BYTES:
        return 0
    rest = round_up(size_bytes, SEGMENT_STEP_BYTES) - size_bytes
    unsplit = version >= UNSPLIT_SINCE and size_bytes >= UNSPLIT_TENSOR_BYTES
    return rest if unsplit or rest <= LEAST_REST_BYTES else 0
