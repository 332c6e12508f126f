"""Where things stand in a drawing: shares of a bar, places on logarithmic axes; the figures were planned elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from math import ceil, floor, log2
from typing import Any

Json = Mapping[str, Any]

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 432, 14, 216
MOST_TICKS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One term as a stretch of a bar, in percent of its width."""

    name: str
    x: str
    width: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One GPU's memory: its terms in order, the budget line, and the stretch where the cache may begin."""

    segments: tuple[Segment, ...]
    budget_x: str
    uncertain: Segment | None


def memory_bar(rank: Json, *, scale_bytes: int = 0) -> Bar:
    """Return the bar of one rank: the budget's terms, then what is outside it with the graphs that lie there.

    Terms that exceed the GPU make the scale longer, never the bar; `scale_bytes` sets a longer one for several bars.
    """
    inside = [term for term in rank["terms"] if term["inside_budget"] and term["bytes"] > 0]
    ends = list(accumulate(term["bytes"] for term in inside))
    filled = ends[-1] if ends else 0
    scale = max(rank["total_bytes"], filled, scale_bytes)
    starts = [0, *ends]
    segments = [_segment(term["name"], *span, scale) for term, span in zip(inside, pairwise(starts), strict=True)]
    outside_from = max(rank["requested_bytes"], filled)
    segments += [
        _segment(term["name"], outside_from, min(outside_from + term["bytes"], scale), scale)
        for term in sorted(rank["terms"], key=lambda term: term["name"] != "outside_budget")
        if not term["inside_budget"] and term["bytes"] > 0 and outside_from < scale
    ]
    return Bar(
        segments=tuple(segments),
        budget_x=percent(rank["requested_bytes"], scale),
        uncertain=_uncertain(rank, scale),
    )


def _segment(name: str, start: float, end: float, scale: float) -> Segment:
    return Segment(name=name, x=percent(start, scale), width=percent(end - start, scale))


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.3f}%"


def _uncertain(rank: Json, scale: float) -> Segment | None:
    cache = next((term for term in rank["terms"] if term["name"] == "kv_cache"), None)
    if cache is None or cache["low_bytes"] == cache["high_bytes"] or cache["low_bytes"] < 0:
        return None
    end = rank["requested_bytes"]
    return _segment("kv_cache", end - cache["high_bytes"], end - cache["low_bytes"], scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """Neighbouring ranks whose terms are the same: the first is drawn in full, the rest as one thin bar."""

    rank: Json
    name: str
    others: str
    bar: Bar
    numbers: tuple[int, ...]


def rank_groups(ranks: Iterable[Json]) -> tuple[RankGroup, ...]:
    """Return the ranks, neighbours with equal terms together."""
    return tuple(_group(list(same)) for _, same in groupby(ranks, key=_sizes))


def _sizes(rank: Json) -> list[tuple[str, int]]:
    return [(term["name"], term["bytes"]) for term in rank["terms"]]


def _group(same: Sequence[Json]) -> RankGroup:
    first, rest = same[0], same[1:]
    return RankGroup(
        rank=first,
        name=f"rank {first['rank']}",
        others=_named(rest),
        bar=memory_bar(first),
        numbers=tuple(rank["rank"] for rank in same),
    )


def _named(ranks: Sequence[Json]) -> str:
    if not ranks:
        return ""
    low, high = ranks[0]["rank"], ranks[-1]["rank"]
    return f"rank {low}" if low == high else f"rank {low}–{high}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A grid line with its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Requests at once by context on two logarithmic axes: a line, its band, and the current context."""

    line: str
    band: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    now_x: float
    now_y: float
    now_label: str


def context_curve(points: Sequence[Json]) -> Curve | None:
    """Return the drawing of a capacity curve, or None where there are fewer than two points or nothing fits."""
    most = max((point["high_requests"] for point in points), default=0)
    if len(points) < 2 or most < 1:
        return None
    x_axis = Axis(low=points[0]["context_tokens"], high=points[-1]["context_tokens"], start=LEFT, end=RIGHT)
    least = max(1, min(point["low_requests"] for point in points))
    y_axis = Axis(low=2 ** floor(log2(least)), high=2 ** ceil(log2(max(most, 2 * least))), start=BOTTOM, end=TOP)

    def places(count: str) -> list[str]:
        return [f"{x_axis.at(point['context_tokens'])} {y_axis.at(point[count])}" for point in points]

    now = points[-1]
    return Curve(
        line="M" + " L".join(places("requests")),
        band="M" + " L".join([*places("high_requests"), *reversed(places("low_requests"))]) + " Z",
        x_ticks=x_axis.ticks(),
        y_ticks=y_axis.ticks(),
        now_x=x_axis.at(now["context_tokens"]),
        now_y=y_axis.at(now["requests"]),
        now_label=f"{now['context_tokens']:,} tokens: {now['requests']:,}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One logarithmic axis: the values at its ends, and where the ends are drawn."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value; what lies beyond the axis is drawn at its end, so 0 lies on the floor."""
        value = min(max(value, self.low), self.high)
        share = (log2(value) - log2(self.low)) / (log2(self.high) - log2(self.low))
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> tuple[Tick, ...]:
        """Powers of two, thinned until they can be read."""
        powers = range(ceil(log2(self.low)), floor(log2(self.high)) + 1)
        step = 1 + (len(powers) - 1) // MOST_TICKS
        return tuple(Tick(at=self.at(2**power), label=_short(2**power)) for power in powers[::step])


def _short(value: int) -> str:
    """1,024 as 1k: binary thousands, which is how context lengths are spoken of."""
    for size, letter in ((1 << 20, "M"), (1 << 10, "k")):
        if value >= size:
            return f"{value // size}{letter}"
    return str(value)
