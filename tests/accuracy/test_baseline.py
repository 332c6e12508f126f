"""The naive look-up, left one out by hand."""

import pytest

from planner.accuracy.baseline import keys_of, look_up
from planner.core.units import GIB
from tests.accuracy.cases import score_of


def kv_of(looked):
    return looked.figure.predicted_bytes / GIB


def test_a_boot_is_looked_up_among_the_others_of_its_version_tp_and_gpu():
    # one budget and one set of weights, so the median overhead of the others is the median of their KV:
    # without 50 -> median(52, 57) = 54.5; without 52 -> 53.5; without 57 -> 51
    scores = [score_of(id=str(kv), available_kv_gib=(kv,)) for kv in (50.0, 52.0, 57.0)]
    assert [kv_of(one) for one in look_up(scores)] == pytest.approx([54.5, 53.5, 51.0], abs=1e-6)


def test_a_cell_without_another_boot_falls_back_to_a_wider_one():
    lone = score_of(id="lone", vllm="0.11.0", available_kv_gib=(40.0,))
    others = [score_of(id=str(kv), available_kv_gib=(kv,)) for kv in (50.0, 52.0, 57.0)]
    # no other boot of 0.11: the same TP and GPU give median(50, 52, 57) = 52
    assert kv_of(look_up([lone, *others])[0]) == pytest.approx(52.0, abs=1e-6)


def test_the_last_resort_is_every_other_boot():
    assert keys_of(score_of())[-1] == ()


def test_its_interval_is_its_own_leave_one_out_spread():
    scores = [score_of(id=str(kv), available_kv_gib=(kv,)) for kv in (50.0, 52.0, 57.0)]
    # errors of the overhead, measured less looked up: +4.5, +1.5, -6; linear 5 % and 95 % of three: -5.25 and +4.2
    first = look_up(scores)[0].figure
    assert (first.predicted_bytes - first.low_bytes) / GIB == pytest.approx(4.2, abs=1e-6)
    assert (first.high_bytes - first.predicted_bytes) / GIB == pytest.approx(5.25, abs=1e-6)


def test_one_boot_alone_cannot_be_looked_up():
    assert look_up([score_of()]) == ()
