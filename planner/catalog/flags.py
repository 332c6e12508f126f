"""Every flag of `vllm serve`, release by release: what it is called, what it takes, and when it existed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from planner.core.engine import Version

DATA = Path(__file__).with_name("flags.yaml")
ALWAYS = Version(0, 0)
ENABLE_AND_DISABLE_ARE_PAIRS = Version(0, 33)  # vLLM `EnableDisableAction`: --disable-x is --no-enable-x
INVERSES = {"--enable-": "--disable-", "--disable-": "--enable-"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The releases from `first` up to, and without, `gone` (None: it still lives)."""

    first: Version = ALWAYS
    gone: Version | None = None

    def holds(self, version: Version) -> bool:
        """Whether this release is one of them."""
        return self.first <= version and (self.gone is None or version < self.gone)

    def __str__(self) -> str:
        """Return the span in words that follow "exists"."""
        if self.gone is None:
            return f"from vLLM {self.first} on"
        return f"from vLLM {self.first} until just before {self.gone}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag: `name` is vLLM's own name for the setting (underscores), `kind` what it takes (see flags.yaml)."""

    name: str
    kind: str
    lives: Span
    item_kind: str = "str"
    minimum: int | None = None
    maximum: int | None = None
    suffixes: Span = Span()
    no_form: Span = Span()
    also: tuple[tuple[str, Span], ...] = ()
    choices: tuple[tuple[str, Span], ...] = ()
    choices_checked: Span = Span()
    secret: bool = False
    unplanned: str = ""
    planned: tuple[str, ...] = ()
    instead: str = ""

    @property
    def option(self) -> str:
        """The long form, such as `--max-model-len`."""
        return "--" + self.name.replace("_", "-")

    def span_of(self, spelling: str) -> Span:
        """Return the releases that take this spelling of the flag."""
        return dict(self.also).get(spelling, self.no_form if spelling.startswith("--no-") else self.lives)

    def choices_in(self, version: Version) -> tuple[str, ...]:
        """Return the only values that this release takes; none when its parser does not check them."""
        if not self.choices_checked.holds(version):
            return ()
        return tuple(value for value, span in self.choices if span.holds(version))


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One spelling that a release's parser takes; `negated` for `--no-FLAG`."""

    flag: Flag
    negated: bool = False


@cache
def flags() -> Mapping[str, Flag]:
    """Return every known flag of any release by its name with underscores."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with DATA.open(encoding="utf-8") as file:
        rows = yaml.load(file, loader)["flags"]  # noqa: S506 -- both are safe loaders
    return {flag.name: flag for flag in map(_flag, rows)}


@cache
def options(version: Version) -> Mapping[str, Option]:
    """Return every spelling that this release's parser takes."""
    found: dict[str, Option] = {}
    for flag in flags().values():
        if flag.lives.holds(version):
            found.update(_spellings(flag, version))
    return found


def _spellings(flag: Flag, version: Version) -> dict[str, Option]:
    longs = [flag.option, *(option for option, span in flag.also if span.holds(version))]
    found = {option: Option(flag=flag) for option in longs}
    if flag.kind == "bool" and flag.no_form.holds(version):
        negations = ["--no-" + long[2:] for long in longs if long.startswith("--")]
        found |= {option: Option(flag=flag, negated=True) for option in negations + _inverses(longs, version)}
    return found


def _inverses(longs: list[str], version: Version) -> list[str]:
    if version < ENABLE_AND_DISABLE_ARE_PAIRS:
        return []
    return [
        inverse + long.removeprefix(prefix)
        for long in longs
        for prefix, inverse in INVERSES.items()
        if long.startswith(prefix)
    ]


def _flag(row: Mapping[str, Any]) -> Flag:
    first = Version.parse(row["first"])
    return Flag(
        name=row["flag"].replace("-", "_"),
        kind=row["kind"],
        lives=_span([row["first"], row.get("gone")], first),
        item_kind=row.get("of", "str"),
        minimum=row.get("min"),
        maximum=row.get("max"),
        suffixes=_span([row.get("suffix")], first),
        no_form=_span([row.get("no_form")], first),
        also=tuple((option, _span(releases, first)) for option, releases in row.get("also", {}).items()),
        choices=tuple(_choice(item, first) for item in row.get("choices", ())),
        choices_checked=_span([row.get("choices_first"), row.get("choices_gone")], first),
        secret=row.get("secret", False),
        unplanned=row.get("unplanned", ""),
        planned=tuple(row.get("planned", ())),
        instead=row.get("instead", ""),
    )


def _choice(item: Any, first: Version) -> tuple[str, Span]:
    if isinstance(item, dict):
        (value, releases), *_ = item.items()
        return str(value), _span(releases, first)
    return str(item), Span()


def _span(releases: list[str | None], first: Version) -> Span:
    """Read `[first]` or `[first, gone]`; what is left out means "as long as the flag"."""
    since, until = [*releases, None, None][:2]
    return Span(
        first=Version.parse(since) if since else first,
        gone=Version.parse(until) if until else None,
    )
