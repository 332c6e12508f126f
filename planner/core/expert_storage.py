"""The tensors of one layer's routed experts on a rank, for every way to store them (vLLM `FusedMoE` methods)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.core.engine import Version
from planner.core.errors import Unknown
from planner.core.modules import Experts
from planner.core.place import Place
from planner.core.scheme import Scheme
from planner.core.stored import Stored, stored
from planner.core.units import ELEMENT_BYTES, cdiv, round_up

FLOAT = 4
UNQUANTISED_TILES_SINCE = Version(0, 31)
GPTQ_BIAS_SINCE = Version(0, 30)
LEAST_REFINED_BLOCK = 32


@dataclass(frozen=True, slots=True)
class Held:
    """The experts of one rank: how many of how many, their width on the rank, and the rows of gate and up together."""

    count: int
    all_experts: int
    hidden: int
    width: int
    gates: int
    bias: bool

    @property
    def upward(self) -> int:
        """Outputs of gate and up of one expert."""
        return self.gates * self.width

    @property
    def elements(self) -> int:
        """Elements of all matrices."""
        return self.count * (self.upward + self.width) * self.hidden

    def biases(self, element_bytes: int) -> tuple[int, int]:
        """Bytes of the biases of gate and up, and of down."""
        return self.count * self.upward * element_bytes, self.count * self.hidden * element_bytes

    def matrices(self, bits: int) -> tuple[int, int]:
        """Bytes of gate and up, and of down, at so many bits an element."""
        return (
            self.count * self.upward * self.hidden * bits // 8,
            self.count * self.hidden * self.width * bits // 8,
        )


def experts_tensors(experts: Experts, place: Place) -> Stored:
    """Return the tensors of the experts that one rank holds.

    Raises Unknown for an expert's width that the ranks cannot share.
    """
    held = held_experts(experts, place)
    if experts.scheme is None:
        return _unquantised(held, place)
    return _METHODS[experts.scheme.method](held, experts.scheme, place)


def held_experts(experts: Experts, place: Place) -> Held:
    """Return the share of one rank."""
    return Held(
        count=place.experts_of(experts.count),
        all_experts=experts.count + place.redundant_experts,
        hidden=experts.hidden_size,
        width=_width(experts, place),
        gates=2 if experts.gated else 1,
        bias=experts.bias,
    )


def _width(experts: Experts, place: Place) -> int:
    width = experts.intermediate_size // place.expert_shards
    return max(width, experts.least_width) if place.expert_shards > 1 else width


def _unquantised(held: Held, place: Place) -> Stored:
    """TensorRT-LLM's kernels on data-centre Blackwell want a width of whole 128s (vLLM 0.31)."""
    if place.is_family(10) and place.runs(UNQUANTISED_TILES_SINCE):
        held = replace(held, width=round_up(held.width, 128))
    element = ELEMENT_BYTES[place.dtype]
    return stored((*held.matrices(8 * element), *_biases(held, element)))


def _biases(held: Held, element_bytes: int) -> tuple[int, ...]:
    return held.biases(element_bytes) if held.bias else ()


def _fp8(held: Held, scheme: Scheme, place: Place) -> Stored:
    weights, biases = held.matrices(8), _biases(held, ELEMENT_BYTES[place.dtype])
    static = (FLOAT * held.count,) * 2 if scheme.static_input_scale else ()
    kept = (*weights, *biases, *_kept_fp8_scales(held, scheme, place))
    if scheme.made_at_load:
        return stored((*held.matrices(8 * ELEMENT_BYTES[place.dtype]), *biases), kept)
    return stored((*weights, *biases, *_fp8_scales(held, scheme), *static), kept)


def _fp8_scales(held: Held, scheme: Scheme) -> tuple[int, int]:
    match scheme.granularity:
        case "block":
            return _block_scales(held, scheme)
        case "channel":
            return FLOAT * held.count * held.upward, FLOAT * held.count * held.hidden
    return FLOAT * held.count * held.gates, FLOAT * held.count


def _block_scales(held: Held, scheme: Scheme) -> tuple[int, int]:
    outputs, inputs = refined_block(held, scheme.block or (128, 128))
    up = held.gates * cdiv(held.width, outputs) * cdiv(held.hidden, inputs)
    down = cdiv(held.hidden, outputs) * cdiv(held.width, inputs)
    return FLOAT * held.count * up, FLOAT * held.count * down


def refined_block(held: Held, block: tuple[int, int]) -> tuple[int, int]:
    """Return the block of scales: a finer one where the width is no multiple of the checkpoint's.

    Raises Unknown where none fits. Source: vLLM `fused_moe.oracle.fp8.refine_fp8_moe_block_shape` (0.32).
    """
    outputs, inputs = block
    if held.width % outputs == 0 and held.width % inputs == 0:
        return block
    finer = math.gcd(outputs, inputs, held.width, held.hidden)
    if finer >= LEAST_REFINED_BLOCK:
        return (finer, finer)
    raise Unknown(
        field="tensor_parallel_size",
        message=f"experts of width {held.width} a rank do not fit fp8 blocks of {outputs}x{inputs}.",
        fix="choose a smaller tensor-parallel size, or --enable-expert-parallel",
    )


def _kept_fp8_scales(held: Held, scheme: Scheme, place: Place) -> tuple[int, ...]:
    """As for linear layers: spread over the outputs below Ada, packed by the row on data-centre Blackwell."""
    if scheme.granularity != "block":
        return _fp8_scales(held, scheme)
    if place.below(8, 9):
        element, size = ELEMENT_BYTES[place.dtype], (scheme.block or (128, 128))[1]
        up = held.upward * cdiv(held.hidden, size)
        return element * held.count * up, element * held.count * held.hidden * cdiv(held.width, size)
    return _block_scales(held, replace(scheme, scale_bytes=FLOAT))


def _int8(held: Held, scheme: Scheme, place: Place) -> Stored:
    kept = (*held.matrices(8), FLOAT * held.count * held.upward, FLOAT * held.count * held.hidden)
    if scheme.made_at_load:
        created = (*held.matrices(8 * ELEMENT_BYTES[place.dtype]), *_biases(held, ELEMENT_BYTES[place.dtype]))
        return stored(created, (*kept, *_biases(held, ELEMENT_BYTES[place.dtype])))
    return stored((*kept, *_biases(held, ELEMENT_BYTES[place.dtype])))


def _group_sizes(held: Held, scheme: Scheme) -> tuple[int, int]:
    """Groups along the inputs of gate and up, and of down."""
    size = scheme.group_size
    return (1, 1) if size is None else (held.hidden // size, held.width // size)


def _scales_and_zeros(held: Held, scheme: Scheme, place: Place) -> tuple[tuple[int, int], tuple[int, int]]:
    up, down = _group_sizes(held, scheme)
    element, bits = ELEMENT_BYTES[place.dtype], scheme.weight_bits
    scales = (held.count * up * held.upward * element, held.count * down * held.hidden * element)
    zeros = (
        held.count * up * (held.upward * bits // 32) * 4,
        held.count * down * (held.hidden * bits // 32) * 4,
    )
    return scales, zeros


def _awq(held: Held, scheme: Scheme, place: Place) -> Stored:
    scales, zeros = _scales_and_zeros(held, scheme, place)
    return stored((*held.matrices(scheme.weight_bits), *scales, *zeros))


def _gptq(held: Held, scheme: Scheme, place: Place) -> Stored:
    """Biases are made even where the model has none."""
    scales, zeros = _scales_and_zeros(held, scheme, place)
    weights = held.matrices(scheme.weight_bits)
    has_biases = held.bias or place.runs(GPTQ_BIAS_SINCE)
    biases = held.biases(ELEMENT_BYTES[place.dtype]) if has_biases else ()
    return stored((*weights, *scales, *zeros, *biases), (*weights, *scales, *biases))


def _pack(held: Held, scheme: Scheme, place: Place) -> Stored:
    scales, zeros = _scales_and_zeros(held, scheme, place)
    shapes = (2 * held.count * ELEMENT_BYTES[place.dtype],) * 2
    kept = (*held.matrices(scheme.weight_bits), *scales, *(zeros if scheme.zero_points else ()))
    biases = _biases(held, ELEMENT_BYTES[place.dtype])
    return stored((*kept, *biases, *shapes), (*kept, *biases, *shapes))


def _nvfp4(held: Held, scheme: Scheme, place: Place) -> Stored:
    size = scheme.group_size or 16
    scales = (held.count * held.upward * (held.hidden // size), held.count * held.hidden * (held.width // size))
    globals_ = (FLOAT * held.count * held.gates, FLOAT * held.count)
    if scheme.made_at_load:
        return stored(held.matrices(8 * ELEMENT_BYTES[place.dtype]), (*held.matrices(4), *scales, *globals_))
    scaled = held.all_experts if scheme.origin == "modelopt" and place.is_family(10) else held.count
    inputs = (FLOAT * scaled * held.gates, FLOAT * scaled)
    created = (*held.matrices(4), *scales, *globals_, *inputs)
    return stored(created, _kept_nvfp4(held, size, place))


def _kept_nvfp4(held: Held, size: int, place: Place) -> tuple[int, ...]:
    """TensorRT-LLM on data-centre Blackwell pads the hidden size to 256 and the width to 64 (128 without a gate)."""
    if place.is_family(10):
        width = round_up(held.width, 64 if held.gates == 2 else 128)
        held = replace(held, hidden=round_up(held.hidden, 256), width=width)
    scales = (held.count * held.upward * (held.hidden // size), held.count * held.hidden * (held.width // size))
    return (*held.matrices(4), *scales, FLOAT * held.count, FLOAT * held.count)


def _mxfp4(held: Held, scheme: Scheme, place: Place) -> Stored:
    plain = held.matrices(8 * ELEMENT_BYTES[place.dtype])
    if scheme.made_at_load:
        return stored(plain, _mxfp4_tensors(held, bias_bytes=2))
    if scheme.origin == "compressed-tensors":
        return stored(_mxfp4_tensors(held, bias_bytes=2))
    hidden, width = mxfp4_multiples(place, gpt_oss=scheme.origin == "gpt_oss")
    held = replace(held, hidden=round_up(held.hidden, hidden), width=round_up(held.width, width))
    created = _mxfp4_tensors(held, bias_bytes=2)
    triton = scheme.origin == "gpt_oss" and place.is_family(9)
    return stored(created, _triton_mxfp4(held, place) if triton else created)


def _mxfp4_tensors(held: Held, *, bias_bytes: int) -> tuple[int, ...]:
    up, down = held.matrices(4)
    return (up, down, up // 16, down // 16, *_biases(held, bias_bytes))


def _triton_mxfp4(held: Held, place: Place) -> tuple[int, ...]:
    """Triton's kernels keep swizzled scales, a multiple of 8 of them a row; before 0.25 the loaded ones stay too."""
    up, down = held.matrices(4)
    swizzled = (
        held.count * held.upward * round_up(cdiv(held.hidden, 32), 8),
        held.count * held.hidden * round_up(cdiv(held.width, 32), 8),
    )
    loaded = () if place.runs(Version(0, 25)) else (up // 16, down // 16)
    return (up, down, *swizzled, *loaded, *_biases(held, FLOAT))


def mxfp4_multiples(place: Place, *, gpt_oss: bool) -> tuple[int, int]:
    """Return the multiples that hidden size and width are rounded up to by the backend of this GPU.

    gpt-oss runs on Triton's kernels on Hopper and TensorRT-LLM's on data-centre Blackwell, everything else on Marlin.
    Source: vLLM `fused_moe.oracle.mxfp4` (0.32), `quantization.mxfp4` before.
    """
    if gpt_oss and place.is_family(9):
        return (1, 64)
    return (256, 128)


def _mxfp8(held: Held, scheme: Scheme, place: Place) -> Stored:
    up, down = held.matrices(8)
    kept = (up, down, up // 32, down // 32)
    return stored(held.matrices(8 * ELEMENT_BYTES[place.dtype]) if scheme.made_at_load else kept, kept)


_METHODS: dict[str, Callable[[Held, Scheme, Place], Stored]] = {
    "fp8": _fp8,
    "int8": _int8,
    "awq": _awq,
    "gptq": _gptq,
    "pack": _pack,
    "nvfp4": _nvfp4,
    "mxfp4": _mxfp4,
    "mxfp8": _mxfp8,
}
