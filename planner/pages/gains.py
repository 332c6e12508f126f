"""Two bars a technique, without and with it, all on one scale. Geometry alone; the figures were planned."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.core.technique import Measure, Technique
from planner.pages.drawing import percent


@dataclass(frozen=True, slots=True, kw_only=True)
class GainBars:
    """Requests at once without and with one technique, as lengths of two bars."""

    technique: Technique
    measure: Measure
    before_width: str
    after_width: str


def gain_bars(found: Sequence[Technique]) -> tuple[GainBars, ...]:
    """Return the bars of every technique that states requests at once."""
    stated = [(technique, m) for technique in found for m in technique.measures if m.unit == "requests"]
    most = max((max(measure.before, measure.after) for _, measure in stated), default=0) or 1
    return tuple(
        GainBars(
            technique=technique,
            measure=measure,
            before_width=percent(measure.before, most),
            after_width=percent(measure.after, most),
        )
        for technique, measure in stated
    )
