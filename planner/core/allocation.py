"""What PyTorch's allocator adds to large weight tensors: it takes multiples of 2 MiB and does not always split them.

The log's "Model loading took" contains it; the parameters themselves do not.
"""

from collections.abc import Iterator

from planner.core.engine import Version
from planner.core.kv_cache import kv_heads_per_rank
from planner.core.model import Model
from planner.core.situation import Situation
from planner.core.units import MIB, round_up

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
    layer = sum(_rest(size, situation.facts.version) for size in layer_tensors(situation))
    ends = sum(_rest(size, situation.facts.version) for size in end_tensors(situation))
    return situation.layers * layer + ends


def layer_tensors(situation: Situation) -> Iterator[int]:
    """Return the bytes of the matrices of one layer on one rank: QKV, output, up (with gate) and down."""
    model, tp = situation.model, situation.layout.tensor_parallel_size
    query = model.num_attention_heads * model.head_dim // tp
    heads = query + 2 * kv_heads_per_rank(model.num_kv_heads, tp) * model.head_dim
    width = model.intermediate_size // tp
    for rows in (heads, query, (2 if gated_mlp(model) else 1) * width, width):
        yield rows * model.hidden_size * situation.element_bytes


def end_tensors(situation: Situation) -> Iterator[int]:
    """Return the bytes of embedding and head, where this stage holds them."""
    model, layout = situation.model, situation.layout
    rows = round_up(model.vocab_size, 64) // layout.tensor_parallel_size
    first, last = layout.is_first(situation.pp_stage), layout.is_last(situation.pp_stage)
    copies = int(first) + int(last and not (first and model.tie_word_embeddings))
    for _ in range(copies):
        yield rows * model.hidden_size * situation.element_bytes


def gated_mlp(model: Model) -> bool:
    """Whether the MLP has a gate beside its upward projection."""
    matrix = model.intermediate_size * model.hidden_size
    return any(block.name == "MLP" and block.sharded >= 3 * matrix for block in model.layer_blocks)


def _rest(size_bytes: int, version: Version) -> int:
    if size_bytes < LARGE_TENSOR_BYTES:
        return 0
    rest = round_up(size_bytes, SEGMENT_STEP_BYTES) - size_bytes
    unsplit = version >= UNSPLIT_SINCE and size_bytes >= UNSPLIT_TENSOR_BYTES
    return rest if unsplit or rest <= LEAST_REST_BYTES else 0
