"""The catalog as the accuracy account needs it, and the two things made from it: the cases and the fit."""

import json
from collections.abc import Sequence
from functools import cache

from planner import catalog
from planner.accuracy.asked import quantised_at_load
from planner.accuracy.cases import Case, Knowledge, make_cases, with_fit
from planner.accuracy.naming import is_variant_of, resolve_model
from planner.accuracy.observations import observations
from planner.accuracy.variants import named_quantization
from planner.catalog.boots import Boot, boots
from planner.core.fit import Fit
from planner.core.fitting import UNFITTED
from planner.core.model import Model, model_from_config
from planner.core.spreads import fit_boots


def knowledge(fit: Fit) -> Knowledge:
    """Return the catalog's look-ups with a fit."""
    return Knowledge(
        model_of=model_of,
        gpus=catalog.gpus(),
        find_gpu=catalog.find_gpu,
        engine_facts=catalog.engine_facts,
        fit=fit,
    )


def model_of(boot: Boot) -> tuple[Model, bool]:
    """Return the model that a boot names, and whether it is taken for a relative: another tuning of a known model.

    A name that tells how the checkpoint is quantised is as good as the known model's.

    Raises Unknown for a name without a relative and for an architecture that cannot be planned.
    """
    name, is_relative = resolve_model(boot.model, catalog.known_names(), lambda text: catalog.find_entry(text).name)
    model = catalog.find_model(name)
    quantization = named_quantization(boot.model, "" if quantised_at_load(boot, model) else boot.quantization)
    if model.quantization is not None or quantization is None:
        return model, is_relative
    also = (known for known in catalog.known_names() if catalog.full_name(known) == name)
    return _variant(name, boot.model, json.dumps(quantization)), not any(is_variant_of(boot.model, one) for one in also)


@cache
def _variant(base: str, name: str, quantization: str) -> Model:
    config = {**catalog.find_config(base), "quantization_config": json.loads(quantization)}
    return model_from_config(config, name=name)


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
