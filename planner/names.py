"""Names as people and tools write them, brought to one form."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

from planner.core.errors import Unknown


def slug_of(name: str) -> str:
    """Return the form of a name that an address may hold; names that differ in case alone share it."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.strip().lower().replace("/", "--")).strip("-.")


def bare(name: str) -> str:
    """Return letters and digits alone, without the maker: `NVIDIA A100-SXM4-80GB` is `a100sxm480gb`."""
    return re.sub(r"[^a-z0-9]+", "", name.lower().removeprefix("nvidia"))


def unknown_name(kind: str, name: str, names: Iterable[str]) -> Unknown:
    """Return the error for a name that is not in a list, with the nearest that are."""
    near = _nearest(name, list(names))
    fix = f"did you mean {', '.join(near)}?" if near else f"add the {kind}, or choose one of the list"
    return Unknown(field=kind, message=f"no {kind} is known as {name!r}.", fix=fix)


def _nearest(name: str, names: list[str]) -> list[str]:
    """Names that go on where a short one (`h100`) ends come first, the shortest in front."""
    part = bare(name)
    longer = sorted((known for known in names if part and part in bare(known)), key=len)
    return longer[:3] or get_close_matches(name, names, n=3, cutoff=0.5)
