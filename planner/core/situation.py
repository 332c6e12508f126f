"""One pipeline stage of one deployment, seen by the measured terms: the sizes that drive them, in elements."""

from dataclasses import dataclass

from planner.core.drafter import Drafter
from planner.core.engine import EngineFacts, ResolvedArgs, Version
from planner.core.hardware import Gpu
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.place import Place, place_of
from planner.core.units import DTYPE_BYTES

ALLREDUCE_FUSION_SINCE = Version(0, 17)
UNIFIED_MEMORY_CAPABILITIES = frozenset({(8, 7), (11, 0), (12, 1)})  # Orin, Thor, GB10: the GPU shares the host's RAM


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What one rank of a pipeline stage runs: model, device, version, resolved command and layout."""

    model: Model
    gpu: Gpu
    facts: EngineFacts
    args: ResolvedArgs
    layout: Layout
    pp_stage: int
    drafter: Drafter | None = None

    @property
    def place(self) -> Place:
        """The rank as far as the sizes of its tensors depend on it."""
        return place_of(
            self.layout,
            dtype=self.args.dtype,
            capability=self.gpu.compute_capability,
            version=self.facts.version,
        )

    @property
    def element_bytes(self) -> int:
        """Bytes of one activation element."""
        return DTYPE_BYTES[self.args.dtype]

    @property
    def layers(self) -> int:
        """Layers of this stage."""
        return self.layout.layers_per_stage[self.pp_stage]

    @property
    def samples(self) -> bool:
        """Whether this stage turns hidden states into tokens."""
        return self.layout.is_last(self.pp_stage)

    @property
    def sampled_rows(self) -> int:
        """Sequences that the profiling pass samples for."""
        return min(self.args.max_num_seqs, self.args.max_num_batched_tokens)

    @property
    def logits(self) -> int:
        """Elements of the logits; every rank gathers the whole vocabulary."""
        return self.sampled_rows * self.model.vocab_size

    @property
    def hidden_batch(self) -> int:
        """Elements of the hidden states of one profiled batch."""
        return self.args.max_num_batched_tokens * self.model.hidden_size

    @property
    def kind(self) -> str:
        """The kind of model as far as measured terms differ: states, latent, experts or dense; the first that holds."""
        traits = self.model.traits
        kinds = {"states": traits.has_states, "latent": traits.latent, "experts": traits.experts > 0}
        return next((kind for kind, holds in kinds.items() if holds), "dense")

    @property
    def hardware(self) -> str:
        """The kind of device as far as measured terms differ: hopper, blackwell, unified or other."""
        capability = self.gpu.compute_capability or (0, 0)
        if capability in UNIFIED_MEMORY_CAPABILITIES:
            return "unified"
        return {9: "hopper", 10: "blackwell"}.get(capability[0], "other")

    @property
    def spread_over(self) -> str:
        """How the ranks talk: single, pipeline, tensor, or fused (all-reduce fused with the norm after it).

        Fusion needs Hopper or data-centre Blackwell, compiled code and no data parallelism; it is off in 0.15.1 and
        on in 0.17.1 (vLLM `config.vllm.enable_allreduce_rms_fusion`).
        """
        if self.layout.world_size == 1:
            return "single"
        if self.layout.tensor_parallel_size == 1:
            return "pipeline"
        able = self.gpu.compute_capability in {(9, 0), (10, 0)} and self.layout.data_parallel_size == 1
        wanted = self.facts.version >= ALLREDUCE_FUSION_SINCE and not self.args.enforce_eager
        return "fused" if able and wanted else "tensor"
