"""Fits the measured terms to published boots: robust least squares for the constants, held-out models for the spread.

Few parameters, each with a physical meaning: bytes a logit, copies of the hidden states, bytes of a layer in a graph,
and a median per way of spreading ranks. `spreads.py` adds how far boots lie from it.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from planner.core.activation import activation_bytes, encoder_bytes, sampler_binds, sorts
from planner.core.fit import (
    ENOUGH_BOOTS,
    STATES,
    ActivationFit,
    Fit,
    GraphFit,
    NonTorchFit,
    NonTorchGroup,
    Spread,
    TermSpread,
)
from planner.core.graphs import (
    graph_count,
    graphs_bytes,
    has_experts,
    nodes_bytes,
    quantises_activations,
    split_workspace_bytes,
)
from planner.core.non_torch import era, exact_bytes, logits_unaligned, non_torch_bytes
from planner.core.observation import Observation, evidence_of
from planner.core.situation import Situation
from planner.core.units import MIB

LOG_ROUNDING_BYTES = 5 * MIB  # logs print GiB with two decimals
NO_SPREAD = Spread(below_bytes=0, above_bytes=0)
_START = ActivationFit(
    sorting_bytes_per_logit=36.0,
    body_hidden_copies=3.7,
    base_bytes=2.0 * MIB,
    spread=TermSpread(seen=NO_SPREAD, extrapolated=NO_SPREAD),
)


UNFITTED = Fit(
    unseen_share=0.0,
    activation=_START,
    non_torch=NonTorchFit(
        groups=(), unaligned_alone_bytes=0.0, unaligned_together_bytes=0.0, unaligned_boots=(), extrapolated=NO_SPREAD
    ),
    graphs=GraphFit(
        base_bytes=0.0,
        bytes_per_layer_and_graph=0.0,
        experts_share=0.0,
        quantised_share=0.0,
        estimated_share=1.0,
        captured=TermSpread(seen=NO_SPREAD, extrapolated=NO_SPREAD),
        estimated=TermSpread(seen=NO_SPREAD, extrapolated=NO_SPREAD),
    ),
    evidence=(),
)


def fit_constants(observations: Sequence[Observation]) -> Fit:
    """Return the fitted constants, with spreads of zero."""
    activation = fit_activation(observations)
    return Fit(
        unseen_share=0.0,
        activation=activation,
        non_torch=fit_non_torch(observations, activation),
        graphs=fit_graphs(observations),
        evidence=evidence_of(observations),
    )


def robust_least_squares(regressors: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return coefficients that outliers hardly move: iteratively reweighted least squares with Huber's weights.

    `regressors` is (n, k), `target` (n,); the scale never falls below the rounding of a log.
    """
    scale = np.abs(regressors).max(axis=0)
    scaled = regressors / np.where(scale == 0, 1.0, scale)
    weights = np.ones(len(target))
    for _ in range(30):
        root = np.sqrt(weights)
        solution = np.linalg.lstsq(scaled * root[:, None], target * root, rcond=None)[0]
        residual = np.abs(target - scaled @ solution)
        width = 1.345 * max(1.4826 * float(np.median(residual)), float(LOG_ROUNDING_BYTES))
        weights = np.minimum(1.0, width / np.maximum(residual, 1.0))
    return np.asarray(solution / np.where(scale == 0, 1.0, scale), dtype=np.float64)


def fit_activation(observations: Sequence[Observation]) -> ActivationFit:
    """Return the activation's constants; which phase binds in a boot depends on them, so all settle together."""
    measured = [(o.situation, o.activation_bytes) for o in observations if o.activation_bytes is not None]
    measured = [(s, size) for s, size in measured if s.args.model_runner == "v1" and not encoder_bytes(s)[0]]
    fit = _START
    for _ in range(4):
        fit = _activation_step(fit, measured)
    return fit


def _activation_step(fit: ActivationFit, measured: Sequence[tuple[Situation, float]]) -> ActivationFit:
    """Fit each constant to the boots that it counts in; one that counts in none keeps its value."""
    left = [(s, size - activation_bytes(s, fit)) for s, size in measured]
    sampling = [(s, rest) for s, rest in left if sampler_binds(s, fit)]
    masking = [rest for s, rest in sampling if not sorts(s)]
    sorting = [rest / s.logits for s, rest in sampling if sorts(s)]
    layers = [rest / (s.element_bytes * s.hidden_batch) for s, rest in left if not sampler_binds(s, fit)]
    return replace(
        fit,
        base_bytes=max(0.0, fit.base_bytes + median(masking or [0.0])),
        sorting_bytes_per_logit=fit.sorting_bytes_per_logit + median(sorting or [0.0]),
        body_hidden_copies=fit.body_hidden_copies + median(layers or [0.0]),
    )


def fit_non_torch(observations: Sequence[Observation], activation: ActivationFit) -> NonTorchFit:
    """Return a median per way of spreading ranks, device and era, and what unaligned logits add to it."""
    plain_boots = [o for o in observations if not loads_kernels_of_its_own(o.situation)]
    grown = [(o, size) for o in plain_boots if (size := grown_of(o, activation)) is not None]
    aligned = [(o, size) for o, size in grown if not logits_unaligned(o.situation)]
    keys = sorted({group_key(o.situation) for o, _ in aligned})
    groups = tuple(_group(key, [(o, size) for o, size in aligned if group_key(o.situation) == key]) for key in keys)
    plain = NonTorchFit(
        groups=groups,
        unaligned_alone_bytes=0.0,
        unaligned_together_bytes=0.0,
        unaligned_boots=(),
        extrapolated=NO_SPREAD,
    )
    unaligned = [(o, size) for o, size in grown if logits_unaligned(o.situation)]
    extra = {
        alone: [
            size - non_torch_bytes(o.situation, plain) + exact_bytes(o.situation)
            for o, size in unaligned
            if (o.situation.layout.tensor_parallel_size == 1) is alone
        ]
        for alone in (True, False)
    }
    return replace(
        plain,
        unaligned_alone_bytes=median(extra[True] or [0.0]),
        unaligned_together_bytes=median(extra[False] or [0.0]),
        unaligned_boots=tuple(o.boot for o, _ in unaligned),
    )


def loads_kernels_of_its_own(situation: Situation) -> bool:
    """Whether recurrent layers bring kernels that other models do not load: told apart until memory is compared."""
    return situation.kind == STATES and era(situation) != "free_memory"


def grown_of(o: Observation, activation: ActivationFit) -> float | None:
    """Return the part of non-torch growth that is learned; where only the sum is known, the sum less the activation."""
    if o.non_torch_bytes is not None:
        return o.non_torch_bytes - exact_bytes(o.situation)
    if o.overhead_bytes is None or o.situation.facts.cuda_graphs == "inside":
        return None
    return o.overhead_bytes - activation_bytes(o.situation, activation) - exact_bytes(o.situation)


def group_key(situation: Situation) -> tuple[str, str, str]:
    return situation.spread_over, situation.hardware, era(situation)


def _group(key: tuple[str, str, str], boots: Sequence[tuple[Observation, float]]) -> NonTorchGroup:
    spread_over, hardware, counted = key
    sizes = np.array([size for _, size in boots])
    per_hidden = 0.0
    base = float(np.median(sizes))
    if spread_over == "fused" and len(boots) >= ENOUGH_BOOTS:
        rows = [(1.0, o.situation.layout.tensor_parallel_size * o.situation.model.hidden_size) for o, _ in boots]
        base, per_hidden = (float(c) for c in robust_least_squares(np.array(rows, dtype=float), sizes))
    return NonTorchGroup(
        spread_over=spread_over,
        hardware=hardware,
        era=counted,
        base_bytes=base,
        bytes_per_tp_hidden=per_hidden,
        spread=NO_SPREAD,
        joint_scale=1.0,
        boots=tuple(sorted({o.boot for o, _ in boots})),
    )


def fit_graphs(observations: Sequence[Observation]) -> GraphFit:
    """Return base and bytes of a layer in a graph, from what Hopper boots really captured, and what adds to them.

    What experts and quantised activations add is told by captures and estimates alike: there are few of either.
    """
    captured = [
        (o.situation, o.graphs_bytes)
        for o in observations
        if o.graphs_bytes is not None and o.situation.hardware == "hopper" and graph_count(o.situation)
    ]
    plain_boots = [o for o in observations if not has_experts(o.situation) and not quantises_activations(o.situation)]
    plain = [(s, size) for s, size in captured if not has_experts(s) and not quantises_activations(s)]
    rows = [(1.0, s.layers * graph_count(s)) for s, _ in plain]
    target = [size - split_workspace_bytes(s) for s, size in plain]
    base, each = (float(c) for c in robust_least_squares(np.array(rows, dtype=float), np.array(target)))
    fit = replace(UNFITTED.graphs, base_bytes=base, bytes_per_layer_and_graph=each)
    ratios = [size / graphs_bytes(s, fit) for s, size in _estimates(plain_boots)]
    fit = replace(fit, estimated_share=median(ratios or [1.0]))
    sizes = [*captured, *((s, size / fit.estimated_share) for s, size in _estimates(observations))]
    return replace(
        fit,
        experts_share=_added_share([(s, size) for s, size in sizes if has_experts(s)], fit),
        quantised_share=_added_share(
            [(s, size) for s, size in sizes if quantises_activations(s) and not has_experts(s)], fit
        ),
    )


def _estimates(observations: Sequence[Observation]) -> list[tuple[Situation, float]]:
    """Return vLLM's own estimates where it prints them and graphs are captured."""
    return [
        (o.situation, o.graphs_estimated_bytes)
        for o in observations
        if o.graphs_estimated_bytes is not None and graph_count(o.situation)
    ]


def _added_share(sizes: Sequence[tuple[Situation, float]], fit: GraphFit) -> float:
    shares = [(size - graphs_bytes(s, fit)) / nodes_bytes(s, fit) for s, size in sizes]
    return max(0.0, median(shares or [0.0]))
