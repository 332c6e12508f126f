"""The tensors of one linear layer on a rank, for every way to store it (vLLM `create_weights` of each method)."""

from collections.abc import Callable
from dataclasses import dataclass

from planner.core.engine import Version
from planner.core.place import Place
from planner.core.scheme import Scheme
from planner.core.stored import Stored, stored
from planner.core.units import ELEMENT_BYTES, cdiv, round_up

FLOAT = 4
SHAPE_BYTES = 16  # two int64 that hold the unpacked shape
DEEPGEMM_SCALES_SINCE = Version(0, 12)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A weight on one rank: its outputs, how many partitions they have, its inputs, and the inputs of all ranks."""

    rows: int
    partitions: int
    inputs: int
    all_inputs: int

    @property
    def is_row_split(self) -> bool:
        """Whether TP divides the inputs."""
        return self.inputs != self.all_inputs


def matrix_tensors(matrix: Matrix, scheme: Scheme, place: Place) -> Stored:
    """Return the tensors that store a matrix under a scheme."""
    return _METHODS[scheme.method](matrix, scheme, place)


def _fp8(matrix: Matrix, scheme: Scheme, place: Place) -> Stored:
    weight = matrix.rows * matrix.inputs
    bound = FLOAT if scheme.origin == "fbgemm" else 0
    static = FLOAT * matrix.partitions if scheme.static_input_scale else 0
    created = (weight, _fp8_scales(matrix, scheme), static, bound)
    kept_static = 0 if place.below(8, 9) else FLOAT * int(scheme.static_input_scale)
    kept = (_padded_rows(matrix, scheme, place) * matrix.inputs, _kept_fp8_scales(matrix, scheme, place), kept_static)
    if scheme.made_at_load:
        return stored((weight * ELEMENT_BYTES[place.dtype],), kept)
    return stored(created, (*kept, bound))


def _padded_rows(matrix: Matrix, scheme: Scheme, place: Place) -> int:
    """ModelOpt's block fp8 fills the last block of outputs."""
    del place
    padded = scheme.origin == "modelopt" and scheme.granularity == "block"
    return round_up(matrix.rows, 128) if padded else matrix.rows


def _fp8_scales(matrix: Matrix, scheme: Scheme) -> int:
    match scheme.granularity:
        case "block":
            outputs, inputs = scheme.block or (128, 128)
            return scheme.scale_bytes * cdiv(matrix.rows, outputs) * cdiv(matrix.inputs, inputs)
        case "channel":
            return FLOAT * matrix.rows
    return FLOAT * matrix.partitions


def _kept_fp8_scales(matrix: Matrix, scheme: Scheme, place: Place) -> int:
    """A weight-only kernel spreads scales over the outputs; DeepGEMM on data-centre Blackwell packs them by the row.

    Source: vLLM `prepare_fp8_layer_for_marlin`, `fp8_utils.deepgemm_post_process_weight_scale_block`; DeepGEMM
    `transform_sf_into_required_layout`.
    """
    if scheme.granularity != "block":
        per_channel = scheme.granularity == "channel"
        if place.below(8, 9):
            return ELEMENT_BYTES[place.dtype] * matrix.rows
        return FLOAT * matrix.rows if per_channel else FLOAT
    if place.below(8, 9):
        return ELEMENT_BYTES[place.dtype] * matrix.rows * cdiv(matrix.inputs, (scheme.block or (128, 128))[1])
    if place.is_family(10) and place.runs(DEEPGEMM_SCALES_SINCE):
        return FLOAT * round_up(matrix.rows, 4) * cdiv(matrix.inputs, 512)
    outputs, inputs = scheme.block or (128, 128)
    return FLOAT * cdiv(matrix.rows, outputs) * cdiv(matrix.inputs, inputs)


def _int8(matrix: Matrix, scheme: Scheme, place: Place) -> Stored:
    weight = matrix.rows * matrix.inputs
    channel = FLOAT * matrix.rows
    if scheme.made_at_load:
        return stored((weight * ELEMENT_BYTES[place.dtype],), (weight, channel))
    scales = channel if scheme.granularity == "channel" else FLOAT * matrix.partitions
    zero = int(scheme.zero_points)
    static = FLOAT if scheme.static_input_scale else 0
    adjustment = FLOAT * matrix.rows if scheme.zero_points else 0
    return stored((weight, scales, static, zero), (weight, channel, static, FLOAT * zero, adjustment))


def _groups(matrix: Matrix, scheme: Scheme) -> int:
    """Groups of inputs on this rank: a scale for all inputs, or sorted groups, are whole on every rank."""
    size = scheme.group_size or matrix.all_inputs
    whole = matrix.is_row_split and (scheme.group_size is None or scheme.sorts_groups)
    return (matrix.all_inputs if whole else matrix.inputs) // size


def _packed(matrix: Matrix, scheme: Scheme, place: Place) -> tuple[int, int, int]:
    """Return the bytes of packed weights, of scales in the model's dtype, and of packed zero points."""
    weight = matrix.rows * (matrix.inputs * scheme.weight_bits // 32) * 4
    groups = _groups(matrix, scheme)
    return (
        weight,
        groups * matrix.rows * ELEMENT_BYTES[place.dtype],
        groups * (matrix.rows * scheme.weight_bits // 32) * 4,
    )


def _awq(matrix: Matrix, scheme: Scheme, place: Place) -> Stored:
    """AWQ packs along the outputs."""
    _, scales, zeros = _packed(matrix, scheme, place)
    return stored((matrix.inputs * (matrix.rows * scheme.weight_bits // 32) * 4, scales, zeros))


def _gptq(matrix: Matrix, scheme: Scheme, place: Place) -> Stored:
    weight, scales, zeros = _packed(matrix, scheme, place)
    order = 4 * matrix.inputs if _has_order(place) else 0
    kept_order = 2 * order if scheme.sorts_groups else 0
    return stored((weight, scales, zeros, order), (weight, scales, zeros if scheme.zero_points else 0, kept_order))


def _has_order(place: Place) -> bool:
    """Releases before 0.22 keep the group of each input beside the weights."""
    return not place.runs(Version(0, 22))


def _pack(matrix: Matrix, scheme: Scheme, place: Place) -> Stored:
    groups = _groups(matrix, scheme)
    weight = matrix.rows * cdiv(matrix.inputs * scheme.weight_bits, 32) * 4
    scales = groups * matrix.rows * ELEMENT_BYTES[place.dtype]
    zeros = groups * cdiv(matrix.rows * scheme.weight_bits, 32) * 4 if scheme.zero_points else 0
    return stored((weight, scales, SHAPE_BYTES, zeros))


def _nvfp4(matrix: Matrix, scheme: Scheme, place: Place) -> Stored:
    weight, scales = matrix.rows * matrix.inputs // 2, matrix.rows * (matrix.inputs // (scheme.group_size or 16))
    globals_ = FLOAT * matrix.partitions
    input_bytes = ELEMENT_BYTES[place.dtype] if scheme.weight_only else FLOAT
    inputs = input_bytes * matrix.partitions if scheme.static_input_scale else 0
    if place.below(10):
        return stored((weight, scales, globals_, inputs), (weight, scales, FLOAT))
    kept_weight = round_up(matrix.rows, 32) * round_up(matrix.inputs, 32) // 2
    kept_scales = round_up(matrix.rows, 128) * round_up(matrix.inputs // (scheme.group_size or 16), 4)
    kept_globals = FLOAT * (1 if scheme.weight_only or not inputs else 4)
    return stored((weight, scales, globals_, inputs), (kept_weight, kept_scales, kept_globals))


def _mxfp4(matrix: Matrix, scheme: Scheme, place: Place) -> Stored:
    weight, scales = matrix.rows * matrix.inputs // 2, matrix.rows * (matrix.inputs // 32)
    if scheme.made_at_load:
        return stored((matrix.rows * matrix.inputs * ELEMENT_BYTES[place.dtype],), (weight, scales))
    return stored((weight, scales))


def _mxfp8(matrix: Matrix, scheme: Scheme, place: Place) -> Stored:
    weight, scales = matrix.rows * matrix.inputs, matrix.rows * (matrix.inputs // 32)
    swizzled = round_up(matrix.rows, 128) * round_up(matrix.inputs // 32, 4)
    kept = (weight, scales if place.below(10) else swizzled)
    return stored((weight * ELEMENT_BYTES[place.dtype],) if scheme.made_at_load else (weight, scales), kept)


def _bitsandbytes(matrix: Matrix, scheme: Scheme, place: Place) -> Stored:
    """nf4 with an fp32 maximum for 64 elements, or int8 with an fp32 scale an output."""
    del place
    elements = matrix.rows * matrix.inputs
    if scheme.weight_bits == 8:
        return stored((elements,), (elements, FLOAT * matrix.rows))
    return stored((elements // 2,), (elements // 2, FLOAT * cdiv(elements, 64)))


_METHODS: dict[str, Callable[[Matrix, Scheme, Place], Stored]] = {
    "fp8": _fp8,
    "int8": _int8,
    "awq": _awq,
    "gptq": _gptq,
    "pack": _pack,
    "nvfp4": _nvfp4,
    "mxfp4": _mxfp4,
    "mxfp8": _mxfp8,
    "bitsandbytes": _bitsandbytes,
}
