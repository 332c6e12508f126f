"""Compare: two to six plans side by side, what differs first."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from planner.core.comparison import Comparison, Row, compare
from planner.core.errors import BadInput
from planner.models import Plan
from planner.pages.answer import answer, permitted
from planner.pages.overlay import bars_on_one_scale, curves_on_the_same_axes

LETTERS = "ABCDEF"
PLANS_TO_CHOOSE_FROM = 25


@require_safe
@permitted("planner.view_plan", act="see plans")
def compare_plans(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Plans of the address side by side; with fewer than two, a list to choose from."""
    try:
        plans = _plans(request.GET.getlist("plan"))
    except (BadInput, Http404) as fault:
        if as_json:
            raise
        status = 404 if isinstance(fault, Http404) else 400
        return _choose(request, message=getattr(fault, "message", str(fault)), status=status)
    if not plans:
        return _choose(request, message="", status=200, as_json=as_json)
    data = comparison_data(plans)
    drawn_with = {"only_differences": "only" in request.GET, **_drawings(plans, data)}
    return answer(request, "planner/compare.html", data, as_json=as_json, drawn_with=drawn_with)


def _drawings(plans: Sequence[Plan], data: dict[str, Any]) -> dict[str, Any]:
    return {
        "differing": [row for row in data["rows"] if row["differs"]],
        "same": [row for row in data["rows"] if not row["differs"]],
        "bars": bars_on_one_scale([plan.document for plan in plans], LETTERS, data["scale_bytes"]),
        "overlay": curves_on_the_same_axes(data["curves"], LETTERS),
    }


def _plans(asked: Sequence[str]) -> list[Plan]:
    """Return the plans in the order asked for; a number twice counts once."""
    ids = list(dict.fromkeys(asked))
    if not ids:
        return []
    if not 2 <= len(ids) <= len(LETTERS):
        message = (
            f"{len(ids)} plan{'s were' if len(ids) > 1 else ' was'} asked for; side by side go 2 to {len(LETTERS)}."
        )
        raise BadInput(field="plan", message=message, fix="tick two to six plans of the list")
    strange = [text for text in ids if not (text.isdecimal() and len(text) <= 18)]
    if strange:
        message = f"{strange[0]!r} is not a plan's number."
        raise BadInput(field="plan", message=message, fix="give numbers, e.g. ?plan=17&plan=21")
    found = Plan.objects.select_related("created_by").in_bulk(map(int, ids))
    missing = [text for text in ids if int(text) not in found]
    if missing:
        raise Http404(f"There is no plan {', '.join(missing)}. It may belong to another instance of this planner.")
    return [found[int(text)] for text in ids]


def comparison_data(plans: Sequence[Plan]) -> dict[str, Any]:
    """Return the comparison as data: plans lettered in the order asked for, every difference against the first."""
    comparison = compare([plan.document for plan in plans])
    return {
        "plans": [_heading(plan, letter) for plan, letter in zip(plans, LETTERS, strict=False)],
        "rows": [_row(row) for row in comparison.rows],
        "memory": _memory(comparison),
        "scale_bytes": comparison.scale_bytes,
        "curves": [(plan.document["capacity"] or {}).get("curve", []) for plan in plans],
    }


def _heading(plan: Plan, letter: str) -> dict[str, Any]:
    return {
        "letter": letter,
        "id": plan.pk,
        "name": plan.name,
        "url": reverse("plan", args=[plan.pk]),
        "verdict": plan.verdict,
        "summary": plan.summary,
        "core_version": plan.core_version,
        "created_by": plan.created_by.get_username(),
        "created_at": plan.created_at.isoformat(),
    }


def _row(row: Row) -> dict[str, Any]:
    return {**asdict(row), "differs": row.differs}


def _memory(comparison: Comparison) -> list[dict[str, Any]]:
    return [_row(term) for term in comparison.terms]


def _choose(request: HttpRequest, *, message: str, status: int, as_json: bool = False) -> HttpResponse:
    plans = Plan.objects.listed()[:PLANS_TO_CHOOSE_FROM]
    data = {"message": message, "choose_from": [{"id": plan.pk, "name": plan.name} for plan in plans]}
    return answer(
        request,
        "planner/compare_choose.html",
        data,
        as_json=as_json,
        status=status,
        drawn_with={"plans": plans, "ticked": request.GET.getlist("plan")},
    )
