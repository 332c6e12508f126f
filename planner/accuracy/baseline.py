"""The naive rival: look up the median non-KV overhead of other boots of the same version, TP and GPU.

Its interval is as naive: the 5th to 95th percentile of its own leave-one-out errors over all boots, around its value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from planner.accuracy.rates import quantile
from planner.accuracy.scores import Figure, Score

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What the baseline says of one boot's KV bytes, beside the boot's score."""

    score: Score
    figure: Figure


def keys_of(score: Score) -> tuple[Key, ...]:
    """Return the cells to look in, the most specific first: version x TP x GPU, TP x GPU, GPU, everything."""
    question = score.case.question
    assert question is not None  # noqa: S101  # only answered cases are scored
    version = (question.facts.version.major, question.facts.version.minor)
    tp, gpu = question.args.tensor_parallel_size or 1, question.gpu.slug
    return (version, tp, gpu), (tp, gpu), (gpu,), ()


def look_up(scores: Sequence[Score]) -> tuple[Looked, ...]:
    """Return the baseline's answer for every score that states its KV, each boot left out of its own look-up."""
    usable = [score for score in scores if score.overhead_bytes is not None]
    overheads = [_without(index, usable) for index in range(len(usable))]
    errors = [
        score.overhead_bytes - guess
        for score, guess in zip(usable, overheads, strict=True)
        if guess is not None and score.overhead_bytes is not None
    ]
    low, high = quantile(errors, 0.05) or 0.0, quantile(errors, 0.95) or 0.0
    return tuple(
        Looked(score=score, figure=_figure(score, guess, low, high))
        for score, guess in zip(usable, overheads, strict=True)
        if guess is not None
    )


def _without(index: int, scores: Sequence[Score]) -> float | None:
    """Return the median of the first cell that holds another boot."""
    others = [score for other, score in enumerate(scores) if other != index]
    for depth, key in enumerate(keys_of(scores[index])):
        cell = [o.overhead_bytes for o in others if keys_of(o)[depth] == key and o.overhead_bytes is not None]
        if cell:
            return median(cell)
    return None


def _figure(score: Score, overhead: float, low: float, high: float) -> Figure:
    """A larger overhead is a smaller cache: the ends of the interval change sides."""
    assert score.available_kv is not None  # noqa: S101  # look_up keeps only these
    central = score.requested_bytes - score.weights_bytes - overhead
    return Figure(
        low_bytes=round(central - high),
        predicted_bytes=round(central),
        high_bytes=round(central - low),
        measured_bytes=score.available_kv.measured_bytes,
    )


def by_key(scores: Sequence[Score], key: Callable[[Score], str]) -> dict[str, list[Score]]:
    """Return scores gathered by a key, keys in order."""
    gathered: dict[str, list[Score]] = {}
    for score in scores:
        gathered.setdefault(key(score), []).append(score)
    return dict(sorted(gathered.items()))
