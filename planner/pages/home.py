"""Home: one line to start from, the last plans, and what is known here."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from planner.models import GpuType, Host, ModelSpec, Plan
from planner.pages.answer import answer, permitted
from planner.pages.plans import plan_row
from planner.starts import choices_for

LAST_PLANS = 8
COMMANDS = ("vllm ", "python ", "python3 ", "CUDA_VISIBLE_DEVICES=", "VLLM_")


@require_safe
def home(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The first page; to somebody in no group it says how to get into one."""
    return _home_page(request, as_json=as_json)


@require_safe
@permitted("planner.view_modelspec", act="plan here")
def start(request: HttpRequest) -> HttpResponse:
    """Lead one line of words, or a pasted command, to the workbench; if it can mean several things, ask which."""
    line = request.GET.get("q", "").replace("\x00", "").strip()
    if line.startswith(COMMANDS):
        return redirect(f"{reverse('workbench')}?{urlencode({'command': line})}")
    choices = [{"label": choice.label, "url": f"{reverse('workbench')}?{choice.query}"} for choice in choices_for(line)]
    if len(choices) == 1:
        return redirect(choices[0]["url"])
    message = "" if choices else f"No model and GPU type here match {line!r}. Try fewer words, or pick from the lists."
    return _home_page(request, asked=line, choices=choices, message=message)


def _home_page(request: HttpRequest, *, as_json: bool = False, **drawn_with: Any) -> HttpResponse:
    return answer(request, "planner/home.html", _home_data(request), as_json=as_json, drawn_with=drawn_with)


def _home_data(request: HttpRequest) -> dict[str, Any]:
    if not request.user.has_perm("planner.view_plan"):
        return {"counts": None, "plans": []}
    rows: dict[str, Any] = {"models": ModelSpec, "gpu_types": GpuType, "hosts": Host, "plans": Plan}
    return {
        "counts": {name: kind.objects.count() for name, kind in rows.items()},
        "plans": [plan_row(plan) for plan in Plan.objects.listed()[:LAST_PLANS]],
    }
