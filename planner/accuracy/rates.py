"""Rates with their Wilson bounds, and quantiles of errors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z_95 = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """So many of so many, with the 95 % Wilson bounds of the share; `share` is None of nothing."""

    hits: int
    n: int

    @property
    def share(self) -> float | None:
        """The observed share."""
        return self.hits / self.n if self.n else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The Wilson score interval (Wilson 1927) at 95 %."""
        return wilson_bounds(self.hits, self.n) if self.n else None


def wilson_bounds(hits: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """Return the Wilson score interval of hits of n; it stays inside 0 to 1 and is sound for small n."""
    share, square = hits / n, z * z
    centre = share + square / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    low, high = (centre - half) / (1 + square / n), (centre + half) / (1 + square / n)
    return max(0.0, low), min(1.0, high)


def quantile(values: Sequence[float], level: float) -> float | None:
    """Return a quantile by linear interpolation between order statistics, None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    position = level * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
