"""Drafters that vLLM does not build because something of them cannot be divided."""

from dataclasses import replace

from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.terms import Reason
from planner.core.weight_refusals import weight_refusals


def drafter_refusals(draft: Model | None, layout: Layout) -> tuple[Reason, ...]:
    """Return why a drafter cannot stand on the tensor-parallel ranks of its target.

    Source: vLLM `SpeculativeConfig._verify_args`, which asks of a drafter what `verify_with_parallel_config` asks.
    """
    if draft is None:
        return ()
    alone = replace(layout, pipeline_parallel_size=1, layers_per_stage=(draft.num_layers,))
    reasons = weight_refusals(draft, alone)
    return tuple(replace(reason, message=f"the drafter {draft.name}: {reason.message}") for reason in reasons)
