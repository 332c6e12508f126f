"""What was found out about single boots: figures that cannot be compared, and why an end is not foreseen."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent


@cache
def explanations() -> Mapping[str, str]:
    """Return why the planner does not foresee the end of a boot, or sees one that did not come, by the boot's id."""
    return dict(line.split("\t", 1) for line in _lines("misses.tsv"))


@cache
def set_aside(figure: str) -> Mapping[str, str]:
    """Return why the boots of these ids are not asked for a figure."""
    rows = [line.split("\t") for line in _lines("set_aside.tsv")]
    return {boot: why for boot, what, why in rows if what == figure}


def _lines(name: str) -> list[str]:
    return (_HERE / name).read_text(encoding="utf-8").splitlines()[1:]
