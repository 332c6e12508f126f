"""Which layers and which share of them each rank of one replica holds."""

from dataclasses import dataclass

from planner.core.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One worker of a replica, numbered as vLLM does: tensor-parallel ranks vary fastest."""

    rank: int
    pp_stage: int
    tp_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one model is spread: tensor, pipeline and data parallel sizes, and the layers of each stage.

    With `enable_expert_parallel` whole experts are dealt out to the ranks of TP x DP, `redundant_experts` copies of
    some among them (EPLB); without it each expert is cut.
    """

    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    layers_per_stage: tuple[int, ...]
    enable_expert_parallel: bool = False
    redundant_experts: int = 0

    @property
    def world_size(self) -> int:
        """GPUs of one replica (tensor x pipeline)."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def gpus(self) -> int:
        """GPUs of all data-parallel replicas together."""
        return self.world_size * self.data_parallel_size

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """The ranks of one replica in order."""
        tp = self.tensor_parallel_size
        return tuple(Rank(rank=r, pp_stage=r // tp, tp_rank=r % tp) for r in range(self.world_size))

    def is_first(self, pp_stage: int) -> bool:
        """Whether the stage holds the embedding."""
        return pp_stage == 0

    def is_last(self, pp_stage: int) -> bool:
        """Whether the stage holds the final norm, the head and the sampler."""
        return pp_stage == self.pipeline_parallel_size - 1


def pipeline_split(num_layers: int, stages: int) -> tuple[int, ...]:
    """Return the layers of each stage when nobody says otherwise.

    A remainder goes, one layer each, to the stages before the last, counted from the end; the first stage gets one
    only when all the others but the last have one. Source: vLLM `distributed.utils.get_pp_indices` (0.8.5 to 0.33).
    """
    base, remainder = divmod(num_layers, stages)
    layers = [base] * stages
    for step in range(remainder):
        layers[-(step + 2)] += 1
    return tuple(layers)


def parse_partition(text: str, *, num_layers: int, stages: int) -> tuple[int, ...]:
    """Return the layers of each stage that VLLM_PP_LAYER_PARTITION names, e.g. "20,20,21,19".

    Raises BadInput when a part is no number. Source: vLLM `get_pp_indices`; its two refusals (count and sum) are the
    rule `pp_partition_len`.
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        example = ",".join(map(str, pipeline_split(num_layers, stages)))
        raise BadInput(
            field="VLLM_PP_LAYER_PARTITION",
            message=f"{text!r} is not a list of whole numbers.",
            fix=f"give {stages} numbers that sum to {num_layers}, e.g. {example}",
        ) from None
