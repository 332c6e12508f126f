"""How the numbers of one quantised layer are stored."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """One way to store a weight matrix: its method, bits an element, and how its scales are grouped.

    `method` names the layout: "fp8", "int8", "awq", "gptq", "pack" (compressed-tensors' packed integers), "nvfp4",
    "mxfp4", "mxfp8". `granularity` says what shares a scale: "tensor" (one a merged projection), "channel" (one an
    output), "block" (`block`, outputs x inputs) or "group" (`group_size` inputs; None: all of them). `scale_bytes` is
    the size of a block's scale. `origin` tells the checkpoint families apart where they keep different extras
    ("modelopt", "compressed-tensors", "fbgemm", "gpt_oss", "" otherwise). `weight_only` leaves the inputs as they are.
    `made_at_load` weights are quantised by vLLM while it loads a checkpoint that is not (`--quantization
    fp8_per_tensor` and the like)."""

    method: str
    weight_bits: int
    granularity: str = "tensor"
    group_size: int | None = None
    block: tuple[int, int] | None = None
    scale_bytes: int = 4
    zero_points: bool = False
    static_input_scale: bool = False
    sorts_groups: bool = False
    origin: str = ""
    weight_only: bool = False
    made_at_load: bool = False
