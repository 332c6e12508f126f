"""The table of flags: each line can be read, dates are in order, and what people know of vLLM's history is in it."""

import pytest

from planner.catalog.flags import Span, flags, options
from planner.core.engine import EngineArgs, Version
from planner.readers.command import MEMORY_FIELDS

KINDS = {
    *("int", "float", "str", "bool", "switch", "list", "append", "size", "length", "level"),
    *("json", "json_or_str", "optional_str"),
}


def test_every_setting_that_matters_for_memory_is_a_flag():
    assert set(MEMORY_FIELDS) <= set(flags())
    assert EngineArgs().given == frozenset()


def test_every_line_has_a_known_kind_and_a_life_in_order():
    for flag in flags().values():
        assert flag.kind in KINDS
        assert flag.lives.gone is None or flag.lives.first < flag.lives.gone
        assert all(flag.lives.first <= span.first for _, span in flag.also)


def test_choices_come_and_go():
    dtypes = flags()["kv_cache_dtype"]
    assert dtypes.choices_in(Version(0, 9)) == ("auto", "fp8", "fp8_e4m3", "fp8_e5m2")
    assert "nvfp4" in dtypes.choices_in(Version(0, 20))
    assert flags()["quantization"].choices_in(Version(0, 32)) == ()


@pytest.mark.parametrize(
    ("spelling", "first", "gone"),
    [
        ("--swap-space", None, Version(0, 18)),
        ("--kv-cache-memory-bytes", Version(0, 10, 2), None),
        ("--async-scheduling", Version(0, 10), None),
        ("--cuda-graph-sizes", Version(0, 9), Version(0, 13)),
        ("--performance-mode", Version(0, 17), None),
        ("--watermark", Version(0, 24), None),
        ("--device-memory-utilization", Version(0, 31), None),
        ("-cc", Version(0, 12), None),
        ("--disable-prefix-caching", Version(0, 33), None),
    ],
)
def test_a_spelling_is_known_in_its_own_releases_alone(spelling, first, gone):
    releases = [Version(0, minor, patch) for minor in range(9, 34) for patch in range(3)]
    knowing = [release for release in releases if spelling in options(release)]
    assert knowing == [release for release in releases if Span(first=first or Version(0, 0), gone=gone).holds(release)]
