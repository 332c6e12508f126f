"""Published boots as observations for the fit: what each stage of an answered case measured."""

import re
from collections.abc import Sequence

from planner.accuracy.cases import Case
from planner.catalog.boots import Boot, PerRank
from planner.core.allocation import rounding_bytes
from planner.core.budget import requested_bytes
from planner.core.errors import PlanningError
from planner.core.estimate import Question, case_of, situations_of
from planner.core.observation import Observation
from planner.core.situation import Situation
from planner.core.stage_weights import stage_weights
from planner.core.units import GIB

SIZED = frozenset({"booted", "refused", "out_of_memory_under_load"})  # their logs state what was measured
ONE_RELEASE = re.compile(r"\d+\.\d+(?:\.[\dx]+)?$")


def observations(cases: Sequence[Case]) -> list[Observation]:
    """Return what the boots of the answered cases measured, stage by stage.

    Left out together are the boots of one source; inside a campaign, a source of many models run by the same people on
    the same machines, those of one model.
    """
    found: list[Observation] = []
    for case in cases:
        if case.question is None or case.boot.outcome not in SIZED or not _speaks_for(case.boot):
            continue
        try:
            found.extend(_stages(case, case.question))
        except PlanningError:
            continue
    return found


def _speaks_for(boot: Boot) -> bool:
    """Whether model, device and layout are stated, and one minor release: any other boot would blur the fit."""
    one_release = "vllm" not in boot.assumed or ONE_RELEASE.match(boot.vllm) is not None
    return boot.tier != "C" and not boot.assumed & {"model", "gpu", "tp"} and one_release


def _stages(case: Case, question: Question) -> list[Observation]:
    asked = case_of(question)
    observed = [_observation(case.boot, s) for s in situations_of(question, asked.resolved, asked.layout)]
    return [o for o in observed if o.overhead_bytes is not None or o.activation_bytes is not None]


def group_of(boot: Boot, situation: Situation) -> str:
    """Return what is left out together with this boot: its model inside the one campaign, else its source."""
    source, _, path = boot.source.partition(": ")
    in_campaign = path.startswith("accuracy/results/")
    name = situation.model.name if in_campaign else boot.source
    return f"{source.split(' at ')[0] if in_campaign else ''}|{name}" if boot.source != "unattributed" else boot.id


def _observation(boot: Boot, situation: Situation) -> Observation:
    stage = situation.pp_stage
    inside = situation.facts.cuda_graphs == "inside"
    return Observation(
        boot=boot.id,
        group=group_of(boot, situation),
        situation=situation,
        activation_bytes=_bytes(boot.activation_gib, stage),
        non_torch_bytes=_non_torch(boot, situation),
        graphs_bytes=None if inside else _largest(boot.graphs_gib),
        graphs_estimated_bytes=_largest(boot.graphs_estimated_gib),
        activation_with_graphs_bytes=_bytes(boot.activation_with_graphs_gib, stage),
        overhead_bytes=_overhead(boot, situation),
    )


def _weight_bytes(situation: Situation) -> int:
    return stage_weights(situation).loaded_bytes


def _non_torch(boot: Boot, situation: Situation) -> float | None:
    """A log counts the allocator's rounding of weight tensors as weights; where it prints "consumed" all is in one."""
    consumed = _bytes(boot.consumed_gib, situation.pp_stage)
    if consumed is not None:
        return consumed - _weight_bytes(situation)
    grown = _bytes(boot.non_torch_gib, situation.pp_stage)
    return None if grown is None else grown + rounding_bytes(situation)


def _overhead(boot: Boot, situation: Situation) -> float | None:
    """Return requested - weights - logged KV, or the sum that a source derives from it; weights to the byte."""
    if boot.activation_and_non_torch_gib and situation.facts.cuda_graphs != "inside":
        return boot.activation_and_non_torch_gib[0] * GIB + rounding_bytes(situation)
    layout = situation.layout
    stages, figures = layout.pipeline_parallel_size, boot.available_kv_gib
    if not boot.total_gib or not figures or (stages > 1 and len(figures) != stages):
        return None
    available = figures[situation.pp_stage] if stages > 1 else min(figures)
    requested = requested_bytes(situation.gpu.total_bytes, situation.args.gpu_memory_utilization, situation.facts)
    return requested - _weight_bytes(situation) - available * GIB


def _bytes(figures: PerRank, stage: int) -> float | None:
    if not figures:
        return None
    return figures[stage if stage < len(figures) else 0] * GIB


def _largest(figures: PerRank) -> float | None:
    return max(figures) * GIB if figures else None
