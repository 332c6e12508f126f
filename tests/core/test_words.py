"""Figures in words."""

import pytest

from planner.core.units import GIB, MIB
from planner.core.words import (
    flops_from_tera,
    flops_in_words,
    parameters_in_words,
    range_in_gib,
    rate_from_gb_per_second,
    rate_in_words,
    signed_bytes,
    signed_count,
)


@pytest.mark.parametrize(
    ("count", "text"), [(70_553_706_496, "70.6 B"), (125_239_296, "125.2 M"), (1_000_000_000_000, "1 T"), (950, "950")]
)
def test_parameters_read_as_the_field_writes_them(count, text):
    assert parameters_in_words(count) == text


def test_rates_are_decimal_as_on_a_datasheet():
    assert rate_in_words(2_039_000_000_000) == "2,039 GB/s"
    assert flops_in_words(312e12) == "312 TFLOPS"
    assert flops_in_words(989.4e12) == "989.4 TFLOPS"


def test_a_range_whose_ends_read_the_same_is_one_figure():
    assert range_in_gib(80 * GIB, 80 * GIB) == "80.00 GiB"
    assert range_in_gib(79 * GIB, 80 * GIB) == "79.00–80.00 GiB"


@pytest.mark.parametrize(
    ("difference", "text"), [(3 * GIB, "+3 GiB"), (-512 * MIB, "−512 MiB"), (0, "±0"), (-1.5 * GIB, "−1.5 GiB")]
)
def test_differences_of_size_carry_their_sign(difference, text):
    assert signed_bytes(difference) == text


@pytest.mark.parametrize(("difference", "text"), [(12_000, "+12,000"), (-0.08, "−0.08"), (0, "±0"), (1.5, "+1.5")])
def test_differences_of_counts_carry_their_sign(difference, text):
    assert signed_count(difference) == text


def test_what_a_datasheet_says_is_read_back_as_it_was_written():
    assert rate_in_words(rate_from_gb_per_second(2039)) == "2,039 GB/s"
    assert flops_in_words(flops_from_tera(989.4)) == "989.4 TFLOPS"
