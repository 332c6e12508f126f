"""vLLM's releases as people and logs write them."""

import pytest

from planner.core.engine import Version
from planner.core.errors import BadInput


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("0.32.0", (0, 32, 0)),
        ("v0.19", (0, 19, 0)),
        ("0.11.2.post2", (0, 11, 2)),
        ("0.10.1.1", (0, 10, 1)),
        ("0.9.0.1.post2", (0, 9, 0)),
        ("0.26.1rc1.dev608+g0123abc", (0, 26, 1)),
        (" 0.32.0+cpu ", (0, 32, 0)),
    ],
)
def test_a_release_is_read_without_its_suffixes(text, release):
    assert Version.parse(text) == Version(*release)


@pytest.mark.parametrize("text", ["", "main", "nightly", "0", "0.32.x", "1.2.3.4.5", "0.32.0 or so"])
def test_what_is_no_release_is_bad_input(text):
    with pytest.raises(BadInput, match="is not a vLLM version"):
        Version.parse(text)
