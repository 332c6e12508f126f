"""Models: the list, and one model's spec sheet with where it fits."""

import json
from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_safe

from planner import catalog
from planner.filters import ModelFilter
from planner.fits import fits_on_known_gpus
from planner.model_list import SORTABLE, Sheet, sheet_of_model, with_sheets
from planner.models import ModelSpec, Origin
from planner.pages.answer import answer, permitted
from planner.pages.lists import listed, page_of, refuse_misread

PLANNABLE = {"yes": True, "no": False}
FACTS = {
    "model_type": ("model_type", "value"),
    "num_layers": ("layers", "count"),
    "num_attention_heads": ("attention heads", "count"),
    "num_kv_heads": ("KV heads", "count"),
    "head_dim": ("head size", "count"),
    "hidden_size": ("hidden size", "count"),
    "intermediate_size": ("intermediate size", "count"),
    "vocab_size": ("vocabulary", "count"),
    "max_position_embeddings": ("trained length", "tokens"),
    "sliding_window": ("sliding window", "tokens"),
    "num_experts": ("experts", "count"),
    "experts_per_token": ("experts a token", "count"),
    "kv_lora_rank": ("latent KV rank (MLA)", "count"),
    "dtype": ("data type", "value"),
    "quantization": ("quantisation", "value"),
    "tie_word_embeddings": ("tied embeddings", "value"),
}


@require_safe
@permitted("planner.view_modelspec", act="see models")
def model_list(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Every model, narrowed and sorted by the address."""
    ordering = request.GET.get("ordering", "")
    narrowed = ModelFilter(request.GET, queryset=ModelSpec.objects.all())
    if as_json:
        refuse_misread(
            narrowed,
            request.GET,
            besides=("plannable", *(["ordering"] if ordering.removeprefix("-") in SORTABLE else [])),
        )
    rows = with_sheets(
        narrowed.qs,
        plannable=PLANNABLE.get(request.GET.get("plannable", "")),
        ordering=ordering,
    )
    page = page_of(request, rows)
    drawn_with = {
        "page_obj": page,
        "filter": narrowed,
        "plannable": request.GET.get("plannable", ""),
        "architectures": ModelSpec.objects.order_by("architecture").values_list("architecture", flat=True).distinct(),
    }
    data = listed(page, lambda pair: model_row(*pair))
    return answer(request, "planner/model_list.html", data, as_json=as_json, drawn_with=drawn_with)


def model_row(row: ModelSpec, sheet: Sheet) -> dict[str, Any]:
    """One model as data."""
    return {
        "name": row.name,
        "slug": row.slug,
        "url": reverse("model", args=[row.slug]),
        "architecture": row.architecture,
        "origin": row.origin,
        "source": row.source,
        "confidence": row.confidence,
        "plannable": sheet.model is not None,
        "unplanned": sheet.unplanned,
        "facts": asdict(sheet.facts),
        "parameters": sheet.figure("parameters"),
        "max_model_len": sheet.figure("longest"),
        "spec": asdict(sheet.spec) if sheet.spec else None,
    }


@require_safe
@permitted("planner.view_modelspec", act="see models")
def model_detail(request: HttpRequest, slug: str, *, as_json: bool = False) -> HttpResponse:
    """One model: every fact, its source, and what follows from it."""
    row = get_object_or_404(ModelSpec, slug=slug)
    sheet = sheet_of_model(row)
    data = {"model": model_row(row, sheet), "config": row.config, "provenance": _provenance(row)}
    drawn_with = {"stated": _stated(sheet), "config_text": json.dumps(row.config, indent=2, ensure_ascii=False)}
    return answer(request, "planner/model_detail.html", data, as_json=as_json, drawn_with=drawn_with)


def _provenance(row: ModelSpec) -> dict[str, Any] | None:
    """What the catalog says of its own row: keys that the file left out, and what others publish of the model."""
    if row.origin != Origin.CATALOG or catalog.full_name(row.name) not in catalog.model_names():
        return None
    entry = catalog.find_entry(row.name)
    published = {"parameters_billions": entry.published_parameters_billions, "size_gib": entry.published_size_gib}
    return {
        "verified": entry.is_verified,
        "note": entry.note,
        "filled": dict(entry.filled),
        "abridged": list(entry.abridged),
        "published": {name: asdict(figure) for name, figure in published.items() if figure},
    }


def _stated(sheet: Sheet) -> list[tuple[str, Any, str]]:
    """The facts that the configuration states, as label, value and unit; a model that is planned fills the gaps."""
    known = ((label, _known(sheet, name), unit) for name, (label, unit) in FACTS.items())
    return [(label, value, unit) for label, value, unit in known if value is not None]


def _known(sheet: Sheet, name: str) -> Any:
    stated = getattr(sheet.facts, name)
    return getattr(sheet.model, name, None) if stated is None else stated


@require_safe
@permitted("planner.view_modelspec", act="see models")
def model_fits(request: HttpRequest, slug: str, *, as_json: bool = False) -> HttpResponse:
    """On which GPU types and how many of them the model fits, at the newest version's defaults."""
    row = get_object_or_404(ModelSpec, slug=slug)
    part = request.headers.get("HX-Request-Type") == "partial"
    template = "planner/_fits.html" if part else "planner/model_fits.html"
    data = {"model": {"name": row.name, "url": reverse("model", args=[row.slug])}, **fits_on_known_gpus(row)}
    return answer(request, template, data, as_json=as_json)
