"""What each vLLM release does: the facts of a version, folded from the lines of engines.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from planner.catalog.tables import read_table
from planner.core.engine import BatchDefaults, EngineFacts, Version
from planner.core.errors import Unknown

FIELD = "vllm_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFact:
    """One line of the table: a fact holds from `since` until a later line of the same name."""

    name: str
    since: Version
    value: Any
    source: str
    confidence: str


@cache
def engine_fact_table() -> tuple[EngineFact, ...]:
    """Return every line of engines.yaml, its source as an address."""
    table = read_table("engines.yaml")
    return tuple(_fact(row, table["repository"]) for row in table["facts"])


@cache
def known_versions() -> tuple[str, ...]:
    """Return the releases whose facts are known, the oldest first."""
    return tuple(read_table("engines.yaml")["releases"])


def engine_facts(version: str | None = None) -> EngineFacts:
    """Return what a vLLM version does; None is the newest known release.

    A newer version gets the facts of the newest known, and says so in `assumed_newest`. Raises Unknown for a version
    older than the oldest known, BadInput for text that is no version.
    """
    newest = Version.parse(known_versions()[-1])
    asked = newest if version is None else Version.parse(version)
    oldest = Version.parse(known_versions()[0])
    if asked < oldest:
        raise Unknown(
            field=FIELD,
            message=f"vLLM {asked} is older than {oldest}, the oldest release that can be planned.",
            fix=f"plan for {oldest} or later",
        )
    return _facts_of(asked, asked > newest)


@cache
def _facts_of(version: Version, assumed_newest: bool) -> EngineFacts:
    values = {fact.name: _value(fact.value) for fact in facts_in_force(version)}
    rows = tuple(_batch_defaults(row) for row in values.pop("batched_token_defaults"))
    return EngineFacts(version=version, assumed_newest=assumed_newest, batched_token_defaults=rows, **values)


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def facts_in_force(version: Version) -> tuple[EngineFact, ...]:
    """Return the line of each fact that holds in a version."""
    latest: dict[str, EngineFact] = {}
    for fact in sorted(engine_fact_table(), key=lambda fact: fact.since):
        if fact.since <= version:
            latest[fact.name] = fact
    return tuple(latest.values())


def _fact(row: Mapping[str, Any], repository: str) -> EngineFact:
    return EngineFact(
        name=row["fact"],
        since=Version.parse(row["since"]),
        value=row["value"],
        source=repository.format(release=row["since"], path=row["source"]),
        confidence=row["confidence"],
    )


def _batch_defaults(row: Mapping[str, Any]) -> BatchDefaults:
    return replace(BatchDefaults(**row), excludes=tuple(row.get("excludes", ())))
