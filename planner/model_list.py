"""The model list with what each configuration states and, for those that can be planned, what follows from it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db.models import QuerySet

from planner.core.errors import PlanningError
from planner.core.model import Model, model_from_config
from planner.core.model_facts import ModelFacts
from planner.core.spec_sheet import SpecSheet, spec_sheet
from planner.models import ModelSpec

SORTABLE = ("parameters", "num_layers", "num_kv_heads", "longest", "kv_bytes_per_token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What is known of one row: its facts, and the figures of the arithmetic where it can be planned."""

    facts: ModelFacts
    model: Model | None
    spec: SpecSheet | None
    unplanned: str

    def figure(self, name: str) -> int | None:
        """Return a figure that a list may be sorted by, None where it is not known."""
        if name == "kv_bytes_per_token":
            return self.spec.kv_bytes_per_token if self.spec else None
        if name == "longest":
            return self.model.derived_max_model_len if self.model else None
        return getattr(self.model or self.facts, name, None)


@lru_cache(maxsize=4096)
def _sheet(row: ModelSpec, updated_at: datetime) -> Sheet:
    """Read once for each state of a row: rows are equal by their key, and an edit is another time of change."""
    try:
        model = model_from_config(row.config, name=row.name)
        return Sheet(facts=row.facts, model=model, spec=spec_sheet(model), unplanned="")
    except PlanningError as error:
        return Sheet(facts=row.facts, model=None, spec=None, unplanned=error.message)


def sheet_of_model(row: ModelSpec) -> Sheet:
    """Return what is known of a row."""
    return _sheet(row, row.updated_at)


def with_sheets(
    rows: QuerySet[ModelSpec], *, plannable: bool | None = None, ordering: str = ""
) -> list[tuple[ModelSpec, Sheet]]:
    """Return rows with their sheets: those that can (or cannot) be planned, sorted by a figure of the sheet."""
    listed = [(row, sheet_of_model(row)) for row in rows]
    if plannable is not None:
        listed = [(row, sheet) for row, sheet in listed if (sheet.model is not None) is plannable]
    figure = ordering.removeprefix("-")
    return _sorted(listed, figure, downwards=ordering.startswith("-")) if figure in SORTABLE else listed


def _sorted(listed: Iterable[tuple[ModelSpec, Sheet]], figure: str, *, downwards: bool) -> list[Any]:
    """What has no such figure stands last, whichever way the rest runs."""
    keyed = [(sheet.figure(figure), row, sheet) for row, sheet in listed]
    known = sorted((item for item in keyed if item[0] is not None), key=lambda item: item[0] or 0, reverse=downwards)
    return [(row, sheet) for _, row, sheet in (*known, *(item for item in keyed if item[0] is None))]
