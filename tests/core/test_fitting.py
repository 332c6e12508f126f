"""The fit itself: robust regression, repeats, spreads."""

import numpy as np
import pytest

from planner.core.fit import Spread
from planner.core.fitting import robust_least_squares
from planner.core.observation import Observation, distinct_observations
from planner.core.spreads import quantile, spread_of
from planner.core.units import GIB, MIB
from tests.core.situations import PHI_4, situation


def test_one_wild_boot_does_not_move_a_line():
    # y = 1 GiB + 2 GiB x, and one point 40 GiB off
    x = np.arange(12.0)
    y = GIB * (1 + 2 * x)
    y[5] += 40 * GIB
    base, slope = robust_least_squares(np.column_stack([np.ones(12), x]), y)
    assert base / GIB == pytest.approx(1, abs=0.02)
    assert slope / GIB == pytest.approx(2, abs=0.01)


def test_a_regressor_that_never_occurs_gets_no_weight():
    base, unused = robust_least_squares(np.array([[1.0, 0.0]] * 4), np.array([GIB, GIB, GIB, GIB], dtype=float))
    assert base == pytest.approx(GIB)
    assert unused == 0


def observation(boot, asked, **measured):
    return Observation(boot=boot, group="one", situation=asked, **measured)


def test_repeats_of_a_boot_count_once_and_the_fullest_log_is_kept():
    same, other = situation(name="Llama"), situation(PHI_4, name="phi-4")
    kept = distinct_observations(
        [
            observation("a", same, activation_bytes=1.0),
            observation("b", same, activation_bytes=1.0, non_torch_bytes=2.0),
            observation("c", other),
        ]
    )
    assert [o.boot for o in kept] == ["b", "c"]


def test_a_quantile_lies_between_its_neighbours():
    # the 95th percentile of 0..10 lies halfway between the last two
    assert quantile(list(range(11)), 0.95) == pytest.approx(9.5)


def test_a_spread_is_never_finer_than_a_log():
    assert spread_of([]) == Spread(below_bytes=5 * MIB, above_bytes=5 * MIB)
    assert spread_of([0.0, 0.0, 0.0]) == Spread(below_bytes=5 * MIB, above_bytes=5 * MIB)


def test_a_spread_reaches_as_far_as_the_errors_do_on_each_side():
    errors = [-100.0 * MIB, 0.0, 0.0, 0.0, 200.0 * MIB]
    # linear 5 % quantile of five: -100 + 0.2 x 100 = -80; 95 %: 0.8 x 200 = 160; and the log's 5 MiB on each side
    assert spread_of(errors) == Spread(below_bytes=85 * MIB, above_bytes=165 * MIB)


def test_a_share_widens_with_the_value_and_memory_is_never_negative():
    spread = Spread(below_bytes=10, above_bytes=20, below_share=1.0, above_share=0.5)
    interval = spread.around(100)
    assert (interval.low_bytes, interval.bytes, interval.high_bytes) == (0, 100, 170)
