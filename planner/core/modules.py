"""What a model is built of, in vLLM's terms: linear layers, experts, vocabulary tables and loose tensors.

A module says what exists and how tensor parallelism splits it; `weights` turns it into bytes on a rank.
"""

from dataclasses import dataclass
from enum import StrEnum

from planner.core.scheme import Scheme


class Split(StrEnum):
    """How tensor parallelism splits a linear layer: its outputs, its inputs, or not at all."""

    COLUMN = "column"
    ROW = "row"
    REPLICATED = "replicated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One of the projections that vLLM merges into a linear layer, under its checkpoint name (`q_proj`).

    `units` are what a rank gets whole (heads, groups): with more ranks than units each rank holds one of them, so they
    are replicated. None: the outputs are divided as they are. `partitions` counts what vLLM takes it apart into, each
    with scales of its own.
    """

    name: str
    outputs: int
    units: int | None = None
    partitions: int = 1

    def on_rank(self, tensor_parallel_size: int) -> int:
        """Return the outputs that one rank holds."""
        if self.units is None:
            return self.outputs // tensor_parallel_size
        return max(1, self.units // tensor_parallel_size) * (self.outputs // self.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A linear layer, `name` as vLLM has it inside its layer (`self_attn.qkv_proj`).

    `may_quantise` is False where vLLM builds it without a quantisation config (routers, most towers); `scheme` is what
    the checkpoint's quantisation makes of it (None: the model's dtype). `dtype` overrides the model's dtype; for one
    that `computes_in_float32`, fp32 does on GPUs without a kernel for it. The outputs of a rank are rounded up to
    `output_multiple`, in the last shard. `served` is "" or the modelling code that has it: vLLM's own ("vllm") or the
    Transformers backend ("transformers").
    """

    name: str
    inputs: int
    shards: tuple[Shard, ...]
    split: Split = Split.COLUMN
    bias: bool = False
    may_quantise: bool = True
    scheme: Scheme | None = None
    dtype: str | None = None
    computes_in_float32: bool = False
    output_multiple: int = 1
    served: str = ""

    def outputs_on_rank(self, tensor_parallel_size: int) -> tuple[int, ...]:
        """Return the outputs of each shard on one rank."""
        whole = self.split is not Split.COLUMN
        sizes = [shard.outputs if whole else shard.on_rank(tensor_parallel_size) for shard in self.shards]
        sizes[-1] += -sum(sizes) % self.output_multiple
        return tuple(sizes)

    def inputs_on_rank(self, tensor_parallel_size: int) -> int:
        """Return the inputs on one rank."""
        return self.inputs // tensor_parallel_size if self.split is Split.ROW else self.inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The routed experts of one layer (vLLM `FusedMoE`): gate and up of each, and down.

    Without expert parallelism each is split over all ranks of TP x DP; with it whole experts are. `gated` is False for
    experts without a gate; `bias` adds one to both projections. Ranks that share an expert hold at least `least_width`
    of it each.
    """

    name: str
    count: int
    top_k: int
    hidden_size: int
    intermediate_size: int
    gated: bool = True
    bias: bool = False
    least_width: int = 0
    may_quantise: bool = True
    scheme: Scheme | None = None
    served: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table over the vocabulary: the embedding or the head; its rows are padded to 64 and split over TP.

    `dtype` overrides the model's.
    """

    name: str
    rows: int
    width: int
    bias: bool = False
    tied: bool = False
    may_quantise: bool = False
    scheme: Scheme | None = None
    dtype: str | None = None
    served: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """Loose elements: norms, states, scales, positions.

    `sharded` divides them by TP, `units` as in `Shard`; `dtype` overrides the model's; a buffer isn't trained. One that
    doesn't stay is gone when loading has ended; one with `most_ranks` isn't there with more.
    """

    name: str
    elements: int
    sharded: bool = False
    units: int | None = None
    dtype: str | None = None
    is_buffer: bool = False
    stays: bool = True
    most_ranks: int | None = None
    served: str = ""

    def on_rank(self, tensor_parallel_size: int) -> int:
        """Return the elements that one rank holds."""
        if self.most_ranks is not None and tensor_parallel_size > self.most_ranks:
            return 0
        if self.units is not None:
            return max(1, self.units // tensor_parallel_size) * (self.elements // self.units)
        return self.elements // tensor_parallel_size if self.sharded else self.elements


Module = Linear | Experts | Table | Tensor


def qkv(
    name: str,
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    bias: bool = False,
) -> Linear:
    """Return the merged query, key and value projection (vLLM `QKVParallelLinear`)."""
    shards = (
        Shard(name="q_proj", outputs=heads * head_dim),
        Shard(name="k_proj", outputs=kv_heads * head_dim, units=kv_heads),
        Shard(name="v_proj", outputs=kv_heads * (value_dim or head_dim), units=kv_heads),
    )
    return Linear(name=name, inputs=hidden, shards=shards, bias=bias)


def column(name: str, inputs: int, *outputs: tuple[str, int] | tuple[str, int, int], bias: bool = False) -> Linear:
    """Return a column-parallel layer of one or several merged projections, given as (name, outputs[, partitions])."""
    shards = tuple(Shard(name=each[0], outputs=each[1], partitions=each[2] if len(each) > 2 else 1) for each in outputs)
    return Linear(name=name, inputs=inputs, shards=shards, bias=bias)


def row(name: str, inputs: int, outputs: int, *, bias: bool = False) -> Linear:
    """Return a row-parallel layer: its bias is whole on every rank."""
    shard = Shard(name=name.rpartition(".")[2], outputs=outputs)
    return Linear(name=name, inputs=inputs, shards=(shard,), split=Split.ROW, bias=bias)


def replicated(name: str, inputs: int, outputs: int, *, bias: bool = False, may_quantise: bool = True) -> Linear:
    """Return a layer that every rank holds whole."""
    shard = Shard(name=name.rpartition(".")[2], outputs=outputs)
    return Linear(
        name=name, inputs=inputs, shards=(shard,), split=Split.REPLICATED, bias=bias, may_quantise=may_quantise
    )


def gated_mlp(name: str, hidden: int, width: int, *, bias: bool = False) -> tuple[Linear, Linear]:
    """Return gate and up merged, and down."""
    up = column(f"{name}.gate_up_proj", hidden, ("gate_proj", width), ("up_proj", width), bias=bias)
    return up, row(f"{name}.down_proj", width, hidden, bias=bias)


def norm(name: str, width: int, *, vectors: int = 1, sharded: bool = False) -> Tensor:
    """Return a norm: one vector, or two with a bias."""
    return Tensor(name=name, elements=vectors * width, sharded=sharded)


def kv_scales(name: str) -> Tensor:
    """Return the four fp32 scales that every attention layer registers as buffers (vLLM `Attention`)."""
    return Tensor(name=f"{name}.scales", elements=4, dtype="float32", is_buffer=True)


def parameters_of(module: Module) -> int:
    """Return the parameters of one module as a checkpoint counts them: unpadded, unsplit, without buffers."""
    if module.served == "transformers":
        return 0
    match module:
        case Linear():
            outputs = sum(shard.outputs for shard in module.shards)
            return outputs * (module.inputs + int(module.bias))
        case Experts():
            return module.count * expert_elements(module, module.intermediate_size)
        case Table():
            return 0 if module.tied else module.rows * (module.width + int(module.bias))
        case Tensor():
            return 0 if module.is_buffer or not module.stays else module.elements


def expert_elements(experts: Experts, width: int) -> int:
    """Return the elements of one expert of that width: gate, up and down, and their biases."""
    upward = (2 if experts.gated else 1) * width
    biases = upward + experts.hidden_size if experts.bias else 0
    return upward * experts.hidden_size + width * experts.hidden_size + biases
