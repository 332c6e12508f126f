"""What vLLM refuses and warns of: rules.yaml."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.catalog.tables import read_table
from planner.core.engine import Version

LAST_READ_IN_FULL = "0.32.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: what vLLM's message means, how to recognise it in a log, and the remedy.

    `versions` are the first and the last release that have it; an empty last one means that it still lives.
    """

    id: str
    level: str
    stage: str
    title: str
    means: str
    message: re.Pattern[str]
    remedy: str
    versions: tuple[str, str]
    source: str
    note: str = ""

    def holds(self, version: Version) -> bool:
        """Whether a release has this rule."""
        first, last = self.versions
        return Version.parse(first) <= version and (not last or version <= Version.parse(last))


@cache
def rules() -> tuple[Rule, ...]:
    """Return every rule, in the order of the file."""
    table = read_table("rules.yaml")
    return tuple(_rule(row, table["repository"]) for row in table["rules"])


def _rule(row: Mapping[str, Any], repository: str) -> Rule:
    first, last = row["versions"]["first"], row["versions"]["last"] or ""
    return Rule(
        id=row["id"],
        level=row["level"],
        stage=row["stage"],
        title=row["title"],
        means=row["means"],
        message=re.compile(row["message"]),
        remedy=row["remedy"],
        versions=(first, last),
        source=repository.format(release=last or LAST_READ_IN_FULL, path=row["file"]),
        note=row.get("note", ""),
    )
