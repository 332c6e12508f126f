"""Names of layers as quantised checkpoints list them, and how vLLM matches its own against them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch

from planner.core.errors import BadInput

NUMBER = re.compile(r"\d+")
LAYER_NUMBER = re.compile(r"layers\.(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerName:
    """A layer that may be quantised: vLLM's full name, the projections merged in it, and what it is.

    `kind` is "linear", "experts", "head" or "embedding".
    """

    prefix: str
    kind: str = "linear"
    shards: tuple[str, ...] = ()

    @property
    def is_merged(self) -> bool:
        """Whether the checkpoint stores it as several layers."""
        return len(self.shards) > 1

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the merged projections in the checkpoint, or the name itself."""
        if not self.is_merged:
            return (self.prefix,)
        before, dot, _ = self.prefix.rpartition(".")
        return tuple(f"{before}{dot}{shard}" for shard in self.shards)


def agreeing(name: LayerName, answers: Sequence[object]) -> bool:
    """Whether the merged projections are all listed; BadInput when only some are, which vLLM does not load."""
    listed = sum(map(bool, answers))
    if 0 < listed < len(answers):
        raise BadInput(
            field="quantization_config",
            message=f"some but not all projections merged in {name.prefix} are quantised.",
            fix="quantise all of them the same way, or none; vLLM keeps them in one matrix",
        )
    return bool(listed)


@dataclass(slots=True)
class Entries:
    """The entries of an ignore list or a map, filed by the number of the layer that they name.

    A checkpoint may list thousands; only those that can speak of a layer are tried against its names.
    """

    everywhere: list[str] = field(default_factory=list)
    numbered: dict[str, list[str]] = field(default_factory=dict)
    near: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Iterable[str]) -> "Entries":
        """File the entries; a regular expression may speak of any layer."""
        entries = cls()
        for name in names:
            number = None if name.startswith("re:") else LAYER_NUMBER.search(name)
            if number is None:
                entries.everywhere.append(name)
            else:
                entries.numbered.setdefault(number[1], []).append(name)
        return entries

    @property
    def tell_layers_apart(self) -> bool:
        """Whether any entry speaks of some layers only."""
        return bool(self.numbered) or any(any(c.isdigit() for c in name) for name in self.everywhere)

    def about(self, name: str) -> list[str]:
        """Return the entries that may match a name: those of its layer's number, and those without one."""
        numbers = tuple(LAYER_NUMBER.findall(name))
        if numbers not in self.near:
            files = (self.numbered.get(beginning, ()) for number in numbers for beginning in _beginnings(number))
            self.near[numbers] = [*self.everywhere, *(entry for entries in files for entry in entries)]
        return self.near[numbers]


def _beginnings(number: str) -> Iterator[str]:
    """An entry may end, or go on with a wildcard, in the middle of a number."""
    return (number[:length] for length in range(1, len(number) + 1))


Match = Callable[[str, str], bool]


def exactly(name: str, entry: str) -> bool:
    """Whether an entry is the name, or the name with a star for each number."""
    return name == entry or ("*" in entry and with_stars(name) == entry)


def with_stars(name: str) -> str:
    """Return a name with a star for each number: so long lists of layers are abridged."""
    return NUMBER.sub("*", name)


def contains(name: str, entry: str) -> bool:
    """Whether an entry is a part of the name."""
    return entry in name


def by_pattern(name: str, entry: str) -> bool:
    """Whether an entry is the name, or a regular expression (`re:`) that matches its beginning."""
    return name == entry or (entry.startswith("re:") and re.match(entry[3:], name) is not None)


def by_wildcard(name: str, entry: str) -> bool:
    """Whether an entry is a shell pattern that matches the name."""
    return fnmatch(name, entry)


def is_skipped(name: LayerName, entries: Entries, match: Match = exactly) -> bool:
    """Whether a list of skipped modules names the layer (vLLM `is_layer_skipped`, 0.8.5 to 0.32).

    A merged layer is skipped when its own name or all of its projections are; experts when an entry inside them is.
    """
    listed = entries.about(name.prefix)
    if not listed:
        return False
    if any(match(name.prefix, entry) for entry in listed):
        return True
    if name.kind == "experts" and match is exactly:
        return any(name.prefix in entry for entry in listed)
    if not name.is_merged:
        return False
    return agreeing(name, [any(match(part, entry) for entry in listed) for part in name.parts])
