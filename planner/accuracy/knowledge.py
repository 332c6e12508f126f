"""The catalog as the accuracy account needs it, and the two things made from it: the cases and the fit."""

from collections.abc import Sequence

from planner import catalog
from planner.accuracy.cases import Case, Knowledge, make_cases, with_fit
from planner.accuracy.observations import observations
from planner.catalog.boots import Boot, boots
from planner.core.fit import Fit
from planner.core.fitting import UNFITTED
from planner.core.spreads import fit_boots


def knowledge(fit: Fit) -> Knowledge:
    """Return the catalog's look-ups with a fit."""
    entries = catalog.model_entries()
    return Knowledge(
        model_names=tuple(entry.name for entry in entries),
        unplanned=frozenset(entry.name.lower().rsplit("/", 1)[-1] for entry in entries if entry.facts.unplanned),
        gpus=catalog.gpus(),
        find_model=catalog.find_model,
        find_gpu=catalog.find_gpu,
        engine_facts=catalog.engine_facts,
        fit=fit,
    )


def catalog_cases(fit: Fit) -> tuple[Case, ...]:
    """Return the catalog's own boots as cases."""
    return make_cases(boots(), knowledge(fit))


def cases_of(given: Sequence[Boot], fit: Fit) -> tuple[Case, ...]:
    """Return boots read from files as cases."""
    return make_cases(given, knowledge(fit))


def make_fit() -> Fit:
    """Return the fit of the catalog's boots; the same boots always give the same fit."""
    return fit_boots(observations(catalog_cases(UNFITTED)))


def held_out(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return the cases so that none is asked of a fit that has seen it.

    A boot that the catalog's fit rests on is asked of a fit made without its group: its model inside the one campaign,
    its source elsewhere. Any other boot keeps the fit it has.
    """
    found = observations(catalog_cases(UNFITTED))
    group_of_boot = {o.boot: o.group for o in found}
    groups = sorted({group_of_boot[case.boot.id] for case in cases if case.boot.id in group_of_boot})
    fits = {group: fit_boots([o for o in found if o.group != group]) for group in groups}
    return tuple(
        with_fit(case, fits[group_of_boot[case.boot.id]]) if case.boot.id in group_of_boot else case for case in cases
    )
