"""Wilson bounds and quantiles, by hand."""

import pytest

from planner.accuracy.rates import Rate, quantile, wilson_bounds


def test_wilson_bounds_of_nine_in_ten():
    # p = 0.9, z = 1.96, z2 = 3.8415: centre (0.9 + 0.19207) / 1.38415 = 0.78898,
    # half 1.96 x sqrt(0.009 + 0.0096036) / 1.38415 = 0.26733 / 1.38415 = 0.19314
    low, high = wilson_bounds(9, 10)
    assert low == pytest.approx(0.5958, abs=1e-4)
    assert high == pytest.approx(0.9821, abs=1e-4)


def test_all_of_few_still_leaves_doubt():
    # 1 of 1: low = 1 / (1 + 3.8415) = 0.2065
    assert wilson_bounds(1, 1) == pytest.approx((0.2065, 1.0), abs=1e-4)


def test_none_of_many_has_an_upper_bound():
    # 0 of 43: high = 3.8415 / (43 + 3.8415) = 0.0820
    assert wilson_bounds(0, 43) == pytest.approx((0.0, 0.0820), abs=1e-4)


def test_a_rate_of_nothing_states_nothing():
    assert Rate(hits=0, n=0).share is None
    assert Rate(hits=0, n=0).bounds is None


def test_quantiles_interpolate():
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    # 95 % of four: position 2.85 between 3 and 4
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.95) == pytest.approx(3.85)
    assert quantile([], 0.5) is None
