"""One rank, as far as the sizes of its tensors depend on it."""

from dataclasses import dataclass

from planner.core.engine import Version
from planner.core.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a module is held: how TP and EP cut it, in which dtype, by which release on which GPU.

    `expert_shards` ranks share the width of each expert, `expert_ranks` share the experts; `expert_rank` is the place
    among the latter. `version` None means the newest; `capability` None a GPU without fp8 or fp4 units that matter.
    """

    tensor_parallel_size: int = 1
    expert_shards: int = 1
    expert_ranks: int = 1
    expert_rank: int = 0
    redundant_experts: int = 0
    shared_experts_whole: bool = False
    dtype: str = "bfloat16"
    capability: tuple[int, int] | None = None
    version: Version | None = None

    def experts_of(self, count: int) -> int:
        """Return how many of `count` experts this rank holds: what remains goes to the first ranks, one each.

        Source: vLLM `fused_moe.expert_map_manager.determine_expert_map` (0.8.5 to 0.32).
        """
        base, remainder = divmod(count + self.redundant_experts, self.expert_ranks)
        return base + int(self.expert_rank < remainder)

    def runs(self, since: Version) -> bool:
        """Whether the release is that one or a newer one."""
        return self.version is None or self.version >= since

    def is_family(self, major: int) -> bool:
        """Whether the GPU is of that major compute capability."""
        return self.capability is not None and self.capability[0] == major

    def below(self, major: int, minor: int = 0) -> bool:
        """Whether the GPU's compute capability is known and lower."""
        return self.capability is not None and self.capability < (major, minor)


def place_of(
    layout: Layout,
    *,
    dtype: str,
    capability: tuple[int, int] | None = None,
    version: Version | None = None,
    expert_rank: int = 0,
) -> Place:
    """Return the place of the rank of a layout that holds the most: the first of its expert ranks.

    Without expert parallelism TP and DP together cut each expert; with it whole experts are dealt out, and with DP and
    TP the shared experts are whole on every rank. Source: vLLM `FusedMoEParallelConfig.make`,
    `ParallelConfig.use_sequence_parallel_moe` (0.11 to 0.32).
    """
    together = layout.tensor_parallel_size * layout.data_parallel_size
    dealt = layout.enable_expert_parallel and together > 1
    return Place(
        tensor_parallel_size=layout.tensor_parallel_size,
        expert_shards=1 if dealt else together,
        expert_ranks=together if dealt else 1,
        expert_rank=expert_rank,
        redundant_experts=layout.redundant_experts if dealt else 0,
        shared_experts_whole=dealt and layout.tensor_parallel_size > 1 and layout.data_parallel_size > 1,
        dtype=dtype,
        capability=capability,
        version=version,
    )
