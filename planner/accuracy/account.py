"""The account that the command prints: every boot predicted by a fit that never saw it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner import catalog
from planner.accuracy.cases import Case
from planner.accuracy.given import read_all
from planner.accuracy.knowledge import cases_of, catalog_cases, held_out
from planner.accuracy.scores import score
from planner.accuracy.summary import summary
from planner.core.errors import PlanningError


def account(paths: Sequence[Path] = ()) -> dict[str, Any]:
    """Return the account of the boots in `paths`, or of the catalog's own boots when there is none.

    Every boot is predicted by a fit that never saw it: the headline is out of sample. `in_sample` tells how the
    catalog's fit, which rests on some of these boots, does on all of them. Raises BadInput naming the file and line
    that is no boot.
    """
    fit = catalog.fit()
    cases = cases_of(read_all(paths), fit) if paths else catalog_cases(fit)
    unseen = held_out(cases)
    used = sum(before is not after for before, after in zip(cases, unseen, strict=True))
    return {**_summed(unseen), "in_sample": {**_summed(cases)["available_kv"], "boots_of_the_fit": used}}


def _summed(cases: Sequence[Case]) -> dict[str, Any]:
    settled, scores = [], []
    for case in cases:
        try:
            scored = score(case)
        except PlanningError as fault:
            settled.append(replace(case, standing="unknown", why=str(fault), key=fault.field, question=None))
            continue
        settled.append(case)
        if scored is not None:
            scores.append(scored)
    return summary(settled, scores)
