"""JSON from strangers."""

import pytest

from planner.core.errors import BadInput
from planner.strict_json import DEEPEST, read_json


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "is not valid JSON"),
        (b"{", "line 1, column 2"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[" * 100_000, "levels deep"),
        (b"[" * (DEEPEST + 2) + b"]" * (DEEPEST + 2), "levels deep"),
        (b'{"a": ' + b"9" * 5000 + b"}", "thousands of digits"),
        (b'{"a": 1e999}', "beyond any number"),
        (b'{"a": -1e300}', "beyond any number"),
        (b'{"a": "\\u0000"}', "NUL"),
        (b'{"a\\u0000": 1}', "NUL"),
        (b'{"a": "\\ud800"}', "surrogate"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_words(body, said):
    with pytest.raises(BadInput) as refused:
        read_json(body)
    assert said in str(refused.value)


def test_the_place_of_a_fault_is_named():
    with pytest.raises(BadInput) as refused:
        read_json(b'{"requests": [{"name": "x"}, {"name": "\\u0000"}]}')
    assert refused.value.field == "requests[1].name"


def test_infinity_which_model_configurations_hold_is_kept_as_text():
    assert read_json(b'{"time_step_limit": [0.0, Infinity]}') == {"time_step_limit": [0.0, "Infinity"]}


def test_a_byte_order_mark_is_no_fault():
    assert read_json(b"\xef\xbb\xbf{}") == {}


def test_figures_of_real_configurations_pass():
    assert read_json(b'{"model_max_length": 1000000000000000019884624838656}')
