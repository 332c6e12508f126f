"""How the numbers of one quantised layer are stored."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """One way to store a weight matrix: its method, bits an element, and how its scales are grouped.

    `method` names the layout ("fp8", "fp8_block", "awq", "gptq", "int8", "pack", "nvfp4", "mxfp4", "mxfp8", "bnb").
    `group_size` counts elements along the input that share a scale (None: a tensor or a channel, see `granularity`);
    `block` is (outputs, inputs) of a block of `fp8_block`.
    """

    method: str
    weight_bits: int
    granularity: str = "tensor"
    group_size: int | None = None
    block: tuple[int, int] | None = None
    zero_points: bool = False
    static_input_scale: bool = False
    sorts_groups: bool = False
