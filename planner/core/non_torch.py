"""Non-torch growth: what libraries take from the device between vLLM's first snapshot and the end of profiling.

CUDA context and NCCL are older than the snapshot and not in it; the second model runner's persistent sampler buffers
are, because they are not counted as weights, and so is what the allocator adds to the weight tensors: the planner's
weights are the parameters to the byte.
"""

from planner.core.activation import staying_bytes, staying_parts
from planner.core.allocation import rounding_bytes
from planner.core.engine import Version
from planner.core.fit import NonTorchFit, NonTorchGroup
from planner.core.situation import Situation
from planner.core.units import cdiv, in_gib, in_words

LATE_SINCE = Version(0, 18)
ERA_WORDS = {"early": "before 0.18", "late": "0.18 to 0.26", "free_memory": "0.27.1 on"}
ERAS = ("early", "late", "free_memory")
ALIGNMENT_BYTES = 16
FLOAT32_BYTES = 4
BAD_WORDS_AND_BIASES = 4 * 1024 * 4  # bytes a sequence: four int32 tables of 1,024 entries
NEAREST_SPREADING = {
    "single": ("single", "pipeline", "tensor", "fused"),
    "pipeline": ("pipeline", "single", "tensor", "fused"),
    "tensor": ("tensor", "single", "pipeline", "fused"),
    "fused": ("fused", "tensor", "single", "pipeline"),
}
SOURCE = "growth of non-torch memory during published boots, by how ranks are spread, device and version"


def era(situation: Situation) -> str:
    """Return how the release counts: `early` (before 0.18), `late` (more loads early), `free_memory` (0.27.1 on)."""
    if situation.facts.measures_by_mem_get_info:
        return "free_memory"
    return "late" if situation.facts.version >= LATE_SINCE else "early"


def nearest_group(situation: Situation, fit: NonTorchFit) -> NonTorchGroup:
    """Return the group of boots that fits best: by spreading first, then device, then era."""
    return min(fit.groups, key=lambda group: mismatch(situation, group))


def mismatch(situation: Situation, group: NonTorchGroup) -> tuple[int, bool, int]:
    """Return in what a group differs: spreading (how far), device, era (how far); all zero is a match."""
    nearest_first = NEAREST_SPREADING[situation.spread_over]
    return (
        nearest_first.index(group.spread_over),
        group.hardware != situation.hardware,
        abs(ERAS.index(group.era) - ERAS.index(era(situation))),
    )


def logits_unaligned(situation: Situation) -> bool:
    """Whether rows of float32 logits start off the 16-byte grid where the first runner samples (seen from 0.18 on)."""
    samples = situation.samples and situation.args.model_runner == "v1" and era(situation) != "early"
    return samples and situation.model.vocab_size * FLOAT32_BYTES % ALIGNMENT_BYTES != 0


def unaligned_bytes(situation: Situation, fit: NonTorchFit) -> float:
    """Return what unaligned logits add; less where ranks talk, which takes part of the same memory already."""
    if not logits_unaligned(situation):
        return 0.0
    alone = situation.layout.tensor_parallel_size == 1
    return fit.unaligned_alone_bytes if alone else fit.unaligned_together_bytes


def runner_buffer_bytes(situation: Situation) -> int:
    """Return the second runner's persistent sampler buffers (vLLM `v1.worker.gpu.sample`): exact.

    Output counts (int32 a vocabulary entry), prompt mask and grammar bitmask (a bit each), bad words and biases.
    """
    if situation.args.model_runner != "v2" or not situation.samples:
        return 0
    masks = 2 * cdiv(situation.model.vocab_size, 32) * 4
    return situation.args.max_num_seqs * (situation.model.vocab_size * 4 + masks + BAD_WORDS_AND_BIASES)


def exact_bytes(situation: Situation) -> int:
    """Return the part that is known: runner buffers, rounding of weights, and what profiling leaves where that counts.

    From 0.27.1 vLLM compares free memory, so scratch that stays is consumed; before, it is part of the activation.
    """
    staying = staying_bytes(situation) if situation.facts.measures_by_mem_get_info else 0
    return runner_buffer_bytes(situation) + rounding_bytes(situation) + staying


def grown_bytes(situation: Situation, group: NonTorchGroup, fit: NonTorchFit) -> float:
    """Return the measured part: the group's base, its workspaces, and the cost of unaligned logits."""
    workspaces = group.bytes_per_tp_hidden * situation.layout.tensor_parallel_size * situation.model.hidden_size
    return group.base_bytes + workspaces + unaligned_bytes(situation, fit)


def non_torch_bytes(situation: Situation, fit: NonTorchFit) -> float:
    """Return the central non-torch growth of one rank."""
    return grown_bytes(situation, nearest_group(situation, fit), fit) + exact_bytes(situation)


def non_torch_formula(situation: Situation, group: NonTorchGroup, fit: NonTorchFit) -> str:
    """Return the formula with its numbers."""
    parts = [f"{in_gib(group.base_bytes)} ({group.spread_over}, {group.hardware}, {ERA_WORDS[group.era]})"]
    if group.bytes_per_tp_hidden:
        tp, hidden = situation.layout.tensor_parallel_size, situation.model.hidden_size
        parts.append(f"{group.bytes_per_tp_hidden:,.0f} B x {tp} ranks x {hidden:,} hidden")
    unaligned = unaligned_bytes(situation, fit)
    if unaligned:
        parts.append(f"{in_gib(unaligned)} (rows of {situation.model.vocab_size:,} logits unaligned)")
    rounding, buffers = rounding_bytes(situation), runner_buffer_bytes(situation)
    if rounding:
        parts.append(f"{in_words(rounding)} the allocator adds to the weight tensors")
    if buffers:
        parts.append(f"{in_gib(buffers)} sampler buffers of model runner V2")
    if situation.facts.measures_by_mem_get_info:
        parts.extend(staying_parts(situation))
    return " + ".join(parts)
