"""The three measured terms with their intervals and evidence, and what they take from the budget together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.core import activation, graphs, non_torch
from planner.core.fit import ENOUGH_BOOTS, STATES, Evidence, Fit, NonTorchGroup, Spread
from planner.core.situation import Situation
from planner.core.terms import Interval, Term, exactly

__all__ = ["Fit", "MeasuredTerms", "Situation", "measured_terms"]

SHOWN_EVIDENCE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTerms:
    """The measured terms of one stage; `overhead` is what they take from the budget together, 5 to 95 %.

    Its interval is narrower than the sum of the terms' extremes: they do not err together.
    """

    activation: Term
    non_torch: Term
    cuda_graphs: Term
    overhead: Interval


def measured_terms(situation: Situation, fit: Fit) -> MeasuredTerms:
    """Return activation, non-torch growth and CUDA graphs of one stage; on the CPU platform all are zero and exact.

    Where fewer than five boots of this version and device are known the intervals widen and the terms say so.
    """
    if situation.gpu.is_cpu:
        return _nothing()
    seen = _boots_seen(situation, fit)
    familiar = seen >= ENOUGH_BOOTS
    note = _note(situation, seen)
    group = non_torch.nearest_group(situation, fit.non_torch)
    known = familiar and len(group.boots) >= ENOUGH_BOOTS and not any(non_torch.mismatch(situation, group))
    near = sorted(fit.evidence, key=_distances(situation))
    terms = (
        _activation(situation, fit, familiar, near, note),
        _non_torch(situation, fit, familiar, group, note),
        _graphs(situation, fit, familiar, near, note),
    )
    return MeasuredTerms(
        activation=terms[0],
        non_torch=terms[1],
        cuda_graphs=terms[2],
        overhead=_together(
            terms,
            scale=group.joint_scale if known else 1.0,
            least=0 if familiar else round(fit.unseen_share * situation.gpu.total_bytes),
        ),
    )


def _nothing() -> MeasuredTerms:
    def none(name: str) -> Term:
        return _term(name, exactly(0), "0 on the CPU platform", "vLLM v1/worker/cpu_worker.py", inside=True)

    return MeasuredTerms(
        activation=none("activation"),
        non_torch=none("non_torch"),
        cuda_graphs=none("cuda_graphs"),
        overhead=exactly(0),
    )


def _activation(situation: Situation, fit: Fit, familiar: bool, near: Sequence[Evidence], note: str) -> Term:
    spread = fit.activation.spread.seen if familiar else fit.activation.spread.extrapolated
    central = round(activation.activation_bytes(situation, fit.activation))
    return _term(
        "activation",
        spread.around(central),
        activation.activation_formula(situation, fit.activation),
        activation.SOURCE,
        inside=True,
        evidence=_nearest(near, "activation"),
        note="" if familiar else note,
    )


def _non_torch(situation: Situation, fit: Fit, familiar: bool, group: NonTorchGroup, note: str) -> Term:
    matched = not any(non_torch.mismatch(situation, group))
    exact = non_torch.exact_bytes(situation)
    grown = round(non_torch.grown_bytes(situation, group, fit.non_torch))
    spread = group.spread if matched and familiar else _wider(group, fit.non_torch.extrapolated)
    return _term(
        "non_torch",
        spread.around(grown).shifted(exact),
        non_torch.non_torch_formula(situation, group, fit.non_torch),
        non_torch.SOURCE,
        inside=True,
        evidence=group.boots[:SHOWN_EVIDENCE],
        note="" if familiar and matched else note,
    )


def _wider(group: NonTorchGroup, elsewhere: Spread) -> Spread:
    return Spread(
        below_bytes=max(group.spread.below_bytes, elsewhere.below_bytes),
        above_bytes=max(group.spread.above_bytes, elsewhere.above_bytes),
        below_share=max(group.spread.below_share, elsewhere.below_share),
        above_share=max(group.spread.above_share, elsewhere.above_share),
    )


def _graphs(situation: Situation, fit: Fit, familiar: bool, near: Sequence[Evidence], note: str) -> Term:
    inside = situation.facts.cuda_graphs == "inside"
    formula = graphs.graphs_formula(situation, fit.graphs)
    if not graphs.graph_count(situation):
        return _term("cuda_graphs", exactly(0), formula, graphs.SOURCE, inside=inside)
    spreads = fit.graphs.estimated if inside else fit.graphs.captured
    central = round(graphs.charged_bytes(situation, fit.graphs))
    return _term(
        "cuda_graphs",
        (spreads.seen if familiar else spreads.extrapolated).around(central),
        formula,
        graphs.SOURCE,
        inside=inside,
        evidence=_nearest(near, "graphs_estimated" if inside else "cuda_graphs"),
        note="" if familiar else note,
    )


def _term(
    name: str,
    size: Interval,
    formula: str,
    source: str,
    *,
    inside: bool,
    evidence: tuple[str, ...] = (),
    note: str = "",
) -> Term:
    return Term(
        name=name,
        bytes=size.bytes,
        low_bytes=size.low_bytes,
        high_bytes=size.high_bytes,
        formula=formula,
        source=source,
        inside_budget=inside,
        evidence=evidence,
        note=note,
    )


def _together(terms: Sequence[Term], *, scale: float, least: int) -> Interval:
    """Independent errors add in quadrature; the scale was set so that the sum's interval holds as often as it says.

    `least` is how far boots lay off where too few speak for this release and device.
    """
    inside = [term for term in terms if term.inside_budget]
    central = sum(term.bytes for term in inside)
    below = max(least, scale * math.hypot(*(term.bytes - term.low_bytes for term in inside)))
    above = max(least, scale * math.hypot(*(term.high_bytes - term.bytes for term in inside)))
    return Interval(low_bytes=max(0, round(central - below)), bytes=central, high_bytes=round(central + above))


def _boots_seen(situation: Situation, fit: Fit) -> int:
    version = situation.facts.version
    return fit.boots_of((version.major, version.minor), situation.gpu.slug, situation.kind)


def _note(situation: Situation, seen: int) -> str:
    boots = "boot" if seen == 1 else "boots"
    of_its_kind = " with states" if situation.kind == STATES else ""
    where = f"of vLLM {situation.facts.version} on {situation.gpu.name}"
    return f"extrapolated: {seen} {boots} {where}{of_its_kind} known"


def _distances(situation: Situation) -> Callable[[Evidence], tuple[float, ...]]:
    """Nearest first: same device, kind of model, version, runner, then quantisation, ranks, architecture and size."""
    version, gpu, model = situation.facts.version, situation.gpu, situation.model
    kind, runner, ranks = situation.kind, situation.args.model_runner, situation.layout.world_size
    quantised = model.quantization is not None

    def distance(boot: Evidence) -> tuple[float, ...]:
        return (
            boot.compute_capability != gpu.compute_capability,
            boot.gpu != gpu.slug,
            boot.kind != kind,
            abs(100 * (version.major - boot.version[0]) + version.minor - boot.version[1]),
            boot.model_runner != runner,
            boot.quantised != quantised,
            boot.world_size != ranks,
            boot.architecture != model.architecture,
            abs(boot.hidden_size - model.hidden_size),
        )

    return distance


def _nearest(near: Sequence[Evidence], term: str) -> tuple[str, ...]:
    return tuple(boot.boot for boot in near if term in boot.terms)[:SHOWN_EVIDENCE]
