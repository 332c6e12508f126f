"""How far boots lie from what the fit says of them when their own model, or their own source, was left out of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.core.activation import activation_bytes
from planner.core.calibration import measured_terms
from planner.core.fit import ENOUGH_BOOTS, Fit, GraphFit, NonTorchFit, NonTorchGroup, Spread, TermSpread
from planner.core.fitting import LOG_ROUNDING_BYTES, fit_constants, group_key, grown_of
from planner.core.graphs import estimated_bytes, graph_count, graphs_bytes
from planner.core.non_torch import exact_bytes, non_torch_bytes
from planner.core.observation import Observation, distinct_observations
from planner.core.situation import Situation
from planner.core.units import MIB

LOW, HIGH, JOINT = 0.05, 0.95, 0.90
UNSEEN_FACTOR = 3  # beyond the boots at hand a term's error is taken to be three times as wide ...
UNSEEN_SHARE = 0.05  # ... and 5 % of an activation, where the few boots there are lie within 2 %
FEW_BOOTS_BYTES = 50 * MIB
FEW_BOOTS_SHARE = 0.5  # a non-torch figure of fewer than five boots may be half as much again
GRAPHS_UNSEEN_SHARE = 0.5  # at least; other devices and drivers have captured 0.1 to 2.5 times as much


def fit_boots(observations: Sequence[Observation]) -> Fit:
    """Return the fit of all observations, its spreads from leaving out one group (model or source) at a time."""
    distinct = distinct_observations(observations)
    constants = fit_constants(distinct)
    without = held_out_fits(distinct)
    seen = [o for o in distinct if is_seen(o, constants)]
    unseen = [o for o in distinct if not is_seen(o, constants)]
    spread = replace(
        constants,
        activation=replace(constants.activation, spread=_activation_spread(seen, without)),
        non_torch=_non_torch_spreads(distinct, constants, without),
        graphs=_graph_spreads(seen, unseen, constants, without),
    )
    groups = tuple(replace(g, joint_scale=_joint_scale(g, seen, spread, without)) for g in spread.non_torch.groups)
    joint = replace(spread, non_torch=replace(spread.non_torch, groups=groups))
    return replace(joint, unseen_share=_unseen_share(unseen, without))


def held_out_fits(observations: Sequence[Observation]) -> dict[str, Fit]:
    """Return, for each group, the constants fitted without it."""
    groups = sorted({o.group for o in observations})
    return {group: fit_constants([o for o in observations if o.group != group]) for group in groups}


def is_seen(observation: Observation, fit: Fit) -> bool:
    """Whether enough boots of this version and device are behind the fit."""
    situation = observation.situation
    version = situation.facts.version
    return fit.boots_of((version.major, version.minor), situation.gpu.slug, situation.kind) >= ENOUGH_BOOTS


def quantile(values: Sequence[float], level: float) -> float:
    """Return a quantile by linear interpolation between order statistics."""
    return float(np.quantile(np.array(values), level))


def spread_of(errors: Sequence[float]) -> Spread:
    """Return the 5-95 % spread of errors (measured less predicted), wider by what a log rounds away."""
    low, high = (quantile(errors, LOW), quantile(errors, HIGH)) if errors else (0.0, 0.0)
    return Spread(
        below_bytes=LOG_ROUNDING_BYTES + max(0, round(-low)), above_bytes=LOG_ROUNDING_BYTES + max(0, round(high))
    )


def _share_spread(ratios: Sequence[float], least: float) -> Spread:
    """Return a spread in shares of the central value, from measured over predicted."""
    below = max([least, *(1 - ratio for ratio in ratios)]) if ratios else least
    above = max([least, *(ratio - 1 for ratio in ratios)]) if ratios else least
    return Spread(below_bytes=0, above_bytes=0, below_share=min(1.0, below), above_share=above)


def _activation_spread(seen: Sequence[Observation], without: Mapping[str, Fit]) -> TermSpread:
    errors = [
        o.activation_bytes - activation_bytes(o.situation, without[o.group].activation)
        for o in seen
        if o.activation_bytes is not None and o.situation.args.model_runner == "v1"
    ]
    near = spread_of(errors)
    far = Spread(
        below_bytes=UNSEEN_FACTOR * near.below_bytes,
        above_bytes=UNSEEN_FACTOR * near.above_bytes,
        below_share=UNSEEN_SHARE,
        above_share=UNSEEN_SHARE,
    )
    return TermSpread(seen=near, extrapolated=far)


def _non_torch_spreads(distinct: Sequence[Observation], constants: Fit, without: Mapping[str, Fit]) -> NonTorchFit:
    few = Spread(
        below_bytes=FEW_BOOTS_BYTES,
        above_bytes=FEW_BOOTS_BYTES,
        below_share=FEW_BOOTS_SHARE,
        above_share=FEW_BOOTS_SHARE,
    )
    groups = tuple(
        replace(group, spread=_group_spread(group, distinct, without, few)) for group in constants.non_torch.groups
    )
    return replace(constants.non_torch, groups=groups, extrapolated=few)


def _group_spread(
    group: NonTorchGroup, distinct: Sequence[Observation], without: Mapping[str, Fit], few: Spread
) -> Spread:
    if len(group.boots) < ENOUGH_BOOTS:
        return few
    key = (group.spread_over, group.hardware, group.era)
    members = [o for o in distinct if o.boot in group.boots and group_key(o.situation) == key]
    errors = [error for o in members if (error := _non_torch_error(o, without[o.group])) is not None]
    return spread_of(errors)


def _non_torch_error(o: Observation, fit: Fit) -> float | None:
    grown = grown_of(o, fit.activation)
    if grown is None:
        return None
    return grown + exact_bytes(o.situation) - non_torch_bytes(o.situation, fit.non_torch)


def _graph_spreads(
    seen: Sequence[Observation], unseen: Sequence[Observation], constants: Fit, without: Mapping[str, Fit]
) -> GraphFit:
    captured = _graph_ratios(seen, without, lambda o, _: o.graphs_bytes, graphs_bytes)
    estimated = _graph_ratios(seen, without, lambda o, _: o.graphs_estimated_bytes, estimated_bytes)
    far_captured = _graph_ratios(unseen, without, lambda o, _: o.graphs_bytes, graphs_bytes)
    far_estimated = _graph_ratios(unseen, without, _estimate_within_activation, estimated_bytes)
    return replace(
        constants.graphs,
        captured=TermSpread(
            seen=_ratio_spread(captured), extrapolated=_share_spread([*far_captured, *captured], GRAPHS_UNSEEN_SHARE)
        ),
        estimated=TermSpread(
            seen=_ratio_spread(estimated),
            extrapolated=_share_spread([*far_estimated, *estimated], GRAPHS_UNSEEN_SHARE),
        ),
    )


def _graph_ratios(
    observations: Sequence[Observation],
    without: Mapping[str, Fit],
    measured: Callable[[Observation, Fit], float | None],
    predicted: Callable[[Situation, GraphFit], float],
) -> list[float]:
    ratios = []
    for o in observations:
        fit = without[o.group]
        size = measured(o, fit)
        if size is not None and graph_count(o.situation):
            ratios.append(size / predicted(o.situation, fit.graphs))
    return ratios


def _estimate_within_activation(o: Observation, fit: Fit) -> float | None:
    """From 0.27.1 the log prints activation and estimate as one figure."""
    if o.graphs_estimated_bytes is not None:
        return o.graphs_estimated_bytes
    if o.activation_with_graphs_bytes is None:
        return None
    return max(0.0, o.activation_with_graphs_bytes - activation_bytes(o.situation, fit.activation))


def _ratio_spread(ratios: Sequence[float]) -> Spread:
    if not ratios:
        return Spread(below_bytes=0, above_bytes=0, below_share=1.0, above_share=1.0)
    return Spread(
        below_bytes=0,
        above_bytes=0,
        below_share=max(0.0, 1 - quantile(ratios, LOW)),
        above_share=max(0.0, quantile(ratios, HIGH) - 1),
    )


def _joint_scale(group: NonTorchGroup, seen: Sequence[Observation], fit: Fit, without: Mapping[str, Fit]) -> float:
    """Return what the quadrature of the terms' spreads must be multiplied by to hold 90 % of the group's sums."""
    key = (group.spread_over, group.hardware, group.era)
    members = [o for o in seen if o.overhead_bytes is not None and group_key(o.situation) == key]
    if len(group.boots) < ENOUGH_BOOTS or not members:
        return 1.0
    return quantile([_standardised(o, fit, without[o.group]) for o in members], JOINT)


def _unseen_share(unseen: Sequence[Observation], without: Mapping[str, Fit]) -> float:
    """Return how far all terms together are off on boots that few others speak for, as a share of the device."""
    shares = [share for o in unseen if (share := _share_off(o, without[o.group])) is not None]
    return quantile(shares, HIGH) if shares else 0.0  # few they are, so the wider end


def _share_off(o: Observation, without: Fit) -> float | None:
    if o.overhead_bytes is None:
        return None
    predicted = measured_terms(o.situation, without).overhead.bytes
    return abs(o.overhead_bytes - predicted) / o.situation.gpu.total_bytes


def _standardised(o: Observation, fit: Fit, without: Fit) -> float:
    """Return |error| over the half-width on its side, around a centre that never saw the boot's group."""
    assert o.overhead_bytes is not None  # noqa: S101  # _joint_scale only passes boots that state it
    width = measured_terms(o.situation, fit).overhead
    centre = measured_terms(o.situation, replace(without, evidence=fit.evidence)).overhead.bytes
    error = o.overhead_bytes - centre
    half = width.high_bytes - width.bytes if error > 0 else width.bytes - width.low_bytes
    return abs(error) / max(1, half)
