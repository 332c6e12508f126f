"""The tensors of one module on one rank, in bytes."""

from planner.core.engine import Version
from planner.core.expert_storage import experts_tensors
from planner.core.linear_storage import Matrix, matrix_tensors
from planner.core.modules import Experts, Linear, Module, Split, Table, Tensor
from planner.core.place import Place
from planner.core.stored import Stored, stored
from planner.core.units import ELEMENT_BYTES, round_up

VOCABULARY_MULTIPLE = 64
SHARED_EXPERTS = "shared_expert"
FLOAT32 = "float32"
HOPPER = (9, 0)
ROUTES_IN_FLOAT32_SINCE = Version(0, 17)


def padded_vocabulary(vocab_size: int) -> int:
    """Return the rows vLLM gives an embedding (`VocabParallelEmbedding`: a multiple of 64)."""
    return round_up(vocab_size, VOCABULARY_MULTIPLE)


def module_tensors(module: Module, place: Place) -> Stored:
    """Return the tensors of a module: weights, scales, zero points, biases; those that vanish after loading too."""
    match module:
        case Linear():
            return _linear(module, place)
        case Experts():
            return experts_tensors(module, place)
        case Table():
            return _table(module, place)
        case Tensor():
            size = module.on_rank(place.tensor_parallel_size) * ELEMENT_BYTES[module.dtype or place.dtype]
            return stored((size,), (size,) if module.stays else ())


def ranks_of(linear: Linear, place: Place) -> int:
    """Return how many ranks share a layer: shared experts are whole where tokens, not widths, are split."""
    return 1 if place.shared_experts_whole and SHARED_EXPERTS in linear.name else place.tensor_parallel_size


def _linear(linear: Linear, place: Place) -> Stored:
    ranks = ranks_of(linear, place)
    outputs, inputs = linear.outputs_on_rank(ranks), linear.inputs_on_rank(ranks)
    element = ELEMENT_BYTES[_dtype(linear, place)]
    bias = sum(outputs) * element if linear.bias else 0
    if linear.scheme is None:
        return stored((sum(outputs) * inputs * element, bias))
    whole = linear.inputs if linear.split is Split.ROW else inputs
    partitions = sum(shard.partitions for shard in linear.shards)
    weights = matrix_tensors(Matrix(sum(outputs), partitions, inputs, whole), linear.scheme, place)
    return Stored((*weights.created, bias), (*weights.kept, bias)) if bias else weights


def _dtype(linear: Linear, place: Place) -> str:
    """Hopper and the data-centre Blackwells have a kernel that routes in fp32 from 16-bit weights.

    Source: vLLM `fused_moe.router.gate_linear.GateLinear` (0.17 to 0.33).
    """
    has_kernel = place.runs(ROUTES_IN_FLOAT32_SINCE) and (place.capability == HOPPER or place.is_family(10))
    return FLOAT32 if linear.computes_in_float32 and not has_kernel else linear.dtype or place.dtype


def _table(table: Table, place: Place) -> Stored:
    rows, element = (
        padded_vocabulary(table.rows) // place.tensor_parallel_size,
        ELEMENT_BYTES[table.dtype or place.dtype],
    )
    bias = rows * element if table.bias else 0
    if table.scheme is None:
        return stored((rows * table.width * element, bias))
    weights = matrix_tensors(Matrix(rows, 1, table.width, table.width), table.scheme, place)
    return Stored((*weights.created, bias), (*weights.kept, bias)) if bias else weights
