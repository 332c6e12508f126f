"""Several plans in one drawing: bars on one scale, curves on the same axes. Geometry alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor, log2
from typing import Any

from planner.core.comparison import tightest_rank
from planner.pages.drawing import BOTTOM, LEFT, TOP, Axis, Bar, Tick, memory_bar

Json = Mapping[str, Any]

CURVES_END = 362
LABEL_HEIGHT = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class LetteredBar:
    """The bar of one plan's tightest rank, or None where nothing was sized."""

    letter: str
    rank: Json | None
    bar: Bar | None


def bars_on_one_scale(documents: Sequence[Json], letters: str, scale_bytes: int) -> tuple[LetteredBar, ...]:
    """Return one bar a document, all as long as their bytes are on the common scale."""
    ranks = [tightest_rank(document) for document in documents]
    return tuple(
        LetteredBar(letter=letter, rank=rank, bar=memory_bar(rank, scale_bytes=scale_bytes) if rank else None)
        for letter, rank in zip(letters, ranks, strict=False)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LetteredCurve:
    """One plan's line with the label at its end."""

    letter: str
    line: str
    end_x: float
    end_y: float
    label_y: float
    end_label: str
    points: Sequence[Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """Curves on the same two logarithmic axes."""

    curves: tuple[LetteredCurve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def curves_on_the_same_axes(series: Sequence[Sequence[Json]], letters: str) -> Overlay | None:
    """Return the curves that hold at least one request, or None where no plan does."""
    lettered = [(letter, points) for letter, points in zip(letters, series, strict=False) if _holds_any(points)]
    if not lettered:
        return None
    x_axis, y_axis = _axes([point for _, points in lettered for point in points])
    ends = [y_axis.at(points[-1]["requests"]) for _, points in lettered]
    label_ys = _apart(ends)
    return Overlay(
        curves=tuple(
            _curve(letter, points, x_axis, y_axis, label_y)
            for (letter, points), label_y in zip(lettered, label_ys, strict=True)
        ),
        x_ticks=x_axis.ticks(),
        y_ticks=y_axis.ticks(),
    )


def _holds_any(points: Sequence[Json]) -> bool:
    return len(points) > 1 and any(point["requests"] for point in points)


def _axes(points: Sequence[Json]) -> tuple[Axis, Axis]:
    contexts = [point["context_tokens"] for point in points]
    requests = [max(1, point["requests"]) for point in points]
    low, high = 2 ** floor(log2(min(requests))), 2 ** ceil(log2(max(requests)))
    return (
        Axis(low=min(contexts), high=max(contexts), start=LEFT, end=CURVES_END),
        Axis(low=low, high=max(high, 2 * low), start=BOTTOM, end=TOP),
    )


def _curve(letter: str, points: Sequence[Json], x_axis: Axis, y_axis: Axis, label_y: float) -> LetteredCurve:
    places = [f"{x_axis.at(point['context_tokens'])} {y_axis.at(point['requests'])}" for point in points]
    last = points[-1]
    return LetteredCurve(
        letter=letter,
        line="M" + " L".join(places),
        end_x=x_axis.at(last["context_tokens"]),
        end_y=y_axis.at(last["requests"]),
        label_y=label_y,
        end_label=f"{last['requests']:,}",
        points=points,
    )


def _apart(places: Sequence[float]) -> list[float]:
    """Return the places from the top with room for a label between neighbours, in the order they came in."""
    order = sorted(range(len(places)), key=places.__getitem__)
    spread = list(accumulate((places[i] for i in order), lambda above, place: max(place, above + LABEL_HEIGHT)))
    return [spread[order.index(i)] for i in range(len(places))]
