"""Saved plans: the list, and one plan with its frozen inputs and answer."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_safe

from planner.core import CORE_VERSION
from planner.core.comparison import compare
from planner.filters import PlanFilter
from planner.models import Plan
from planner.pages.answer import answer, permitted
from planner.pages.lists import listed, page_of, refuse_misread
from planner.pages.sheet import sheet_of
from planner.query import query_from_inputs
from planner.revisions import answer_today, command_of

MAIN_FILTERS = ("search", "verdict", "model", "gpu", "created_by")
MORE_FILTERS = ("vllm_version", "created_after", "created_before", "parent")
TABS = {"memory": "Memory", "capacity": "Capacity", "why": "Why", "json": "JSON"}


@require_safe
@permitted("planner.view_plan", act="see plans")
def plan_list(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The newest plans first, narrowed and sorted by the address."""
    narrowed = PlanFilter(request.GET, queryset=Plan.objects.listed())
    if as_json:
        refuse_misread(narrowed, request.GET)
    page = page_of(request, narrowed.qs)
    drawn_with = {
        "page_obj": page,
        "filter": narrowed,
        "main_filters": MAIN_FILTERS,
        "more_filters": MORE_FILTERS,
        "has_more_filters": any(request.GET.get(name) for name in MORE_FILTERS),
    }
    return answer(request, "planner/plan_list.html", listed(page, plan_row), as_json=as_json, drawn_with=drawn_with)


def plan_row(plan: Plan) -> dict[str, Any]:
    """One plan as a list shows it."""
    return {
        "id": plan.pk,
        "name": plan.name,
        "url": reverse("plan", args=[plan.pk]),
        "model": plan.model_name,
        "gpu": plan.gpu_slug,
        "vllm_version": plan.vllm_version,
        "verdict": plan.verdict,
        "summary": plan.summary,
        "core_version": plan.core_version,
        "parent": plan.parent_id,
        "created_by": plan.created_by.get_username(),
        "created_at": plan.created_at.isoformat(),
    }


@require_safe
@permitted("planner.view_plan", act="see plans")
def plan_detail(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """One plan as it was frozen and, where today's arithmetic differs, that beside it."""
    plan = get_object_or_404(Plan.objects.select_related("created_by", "parent"), pk=pk)
    tab = request.GET.get("tab", "memory")
    data = plan_data(plan)
    drawn_with = {
        **sheet_of(plan.document),
        "tab": tab if tab in TABS else "memory",
        "tabs": TABS,
        "saved_at": plan.created_at,
        "asked": _asked(plan.inputs),
        "as_json_text": json.dumps(data, indent=2, ensure_ascii=False),
    }
    return answer(request, "planner/plan_detail.html", data, as_json=as_json, drawn_with=drawn_with)


def _asked(inputs: dict[str, Any]) -> list[tuple[str, Any]]:
    """The frozen inputs as a list of names and values; the command stands apart, a whole configuration by its size."""
    named = {**inputs, **inputs.get("args", {}), **(inputs.get("environment") or {})}
    apart = {"args", "environment", "command", "include", "requests", "config"}
    rows = [(name, value) for name, value in named.items() if name not in apart and value is not None]
    rows += [("request", _request(kind)) for kind in inputs.get("requests") or ()]
    return rows + ([("config", "given with the question, see JSON")] if inputs.get("config") else [])


def _request(kind: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in kind.items() if value is not None)


def plan_data(plan: Plan) -> dict[str, Any]:
    """One plan whole: what was asked, what was answered, and what would be answered today."""
    today = answer_today(plan)
    children = Plan.objects.listed().filter(parent=plan)
    return {
        "plan": {**plan_row(plan), "content_hash": plan.content_hash, "is_intact": plan.is_intact},
        "inputs": plan.inputs,
        "document": plan.document,
        "parent": plan_row(plan.parent) if plan.parent else None,
        "children": [plan_row(child) for child in children],
        "core_version_now": CORE_VERSION,
        "today": today,
        "changed": _changed(plan.document, today) if today else [],
        "workbench_query": query_from_inputs(plan.inputs),
        "command": command_of(plan),
    }


def _changed(frozen: dict[str, Any], today: dict[str, Any]) -> list[dict[str, Any]]:
    compared = compare([frozen, today])
    rows = (*compared.rows, *compared.terms)
    return [{"name": row.name, "unit": row.unit, "values": row.values} for row in rows if row.differs]
