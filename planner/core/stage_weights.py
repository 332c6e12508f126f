"""The weights of the ranks of one pipeline stage as one command loads them."""

from planner.core.lora import lora_bytes
from planner.core.offload import offloaded
from planner.core.situation import Situation
from planner.core.weight_rank import rank_of
from planner.core.weights import RankWeights, rank_weights, with_part

LORA = "LoRA slots"
DRAFTER = "drafter"
OFFLOADED = "weights in host memory"


def stage_weights(situation: Situation) -> RankWeights:
    """Return what the fullest rank of a stage loads: weights, buffers, copies, and slots for adapters."""
    loaded = rank_weights(
        situation.model,
        layout=situation.layout,
        pp_stage=situation.pp_stage,
        dtype=situation.args.dtype,
        version=situation.facts.version,
        towers=situation.args.towers,
        capability=situation.gpu.compute_capability,
    )
    loaded = _with_drafter(_without_offloaded(loaded, situation), situation)
    if situation.args.lora is None:
        return loaded
    rank = rank_of(situation.model, situation.layout, situation.pp_stage, situation.place)
    return with_part(loaded, LORA, lora_bytes(rank, situation.args.lora))


def _without_offloaded(loaded: RankWeights, situation: Situation) -> RankWeights:
    """What lies in the host's memory is not on the GPU, but for the buffers that it is copied into."""
    request = situation.args.offload
    return loaded if request is None else with_part(loaded, OFFLOADED, -offloaded(situation, request).saved_bytes)


def _with_drafter(loaded: RankWeights, situation: Situation) -> RankWeights:
    """A drafter stands on every rank of the last stage."""
    drafter = situation.drafter
    if drafter is None or not situation.layout.is_last(situation.pp_stage):
        return loaded
    added = rank_weights(
        drafter.model,
        layout=drafter.layout(situation.layout),
        pp_stage=0,
        dtype=situation.args.dtype,
        version=situation.facts.version,
        towers=situation.args.towers,
        capability=situation.gpu.compute_capability,
    )
    return with_part(loaded, DRAFTER, added.loaded_bytes)
