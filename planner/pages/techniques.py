"""Techniques: what paging, smaller caches, sharing and eviction do to one plan, on its own mix of requests."""

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_safe

from planner import catalog
from planner.answers import asked
from planner.cache_support import cache_support_by_capability
from planner.core.errors import PlanningError
from planner.core.estimate import Question, estimate
from planner.core.technique import Technique
from planner.core.techniques import techniques
from planner.models import GpuType, ModelSpec
from planner.pages.answer import answer, permitted
from planner.pages.gains import gain_bars
from planner.pages.workbench import address_of
from planner.query import inputs_from_query
from planner.question_form import state_of

ASKED_HERE = ("model", "gpu", "tensor_parallel_size", "max_model_len", "vllm_version")


TEMPLATE = "planner/techniques.html"
NOTHING: dict[str, Any] = {"verdict": None, "summary": "", "asked": None, "techniques": [], "cache_support": []}


@require_safe
@permitted("planner.view_modelspec", act="plan here")
def technique_list(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Every technique with its effect on the plan of the address, which is the workbench's own."""
    state = state_of(request.GET)
    form = _form(state)
    if not (state.get("model") and state.get("gpu")):
        return answer(request, TEMPLATE, NOTHING, as_json=as_json, drawn_with=form)
    try:
        data, found = _weighed(state)
    except PlanningError as fault:
        if as_json:
            raise
        return answer(request, TEMPLATE, NOTHING, as_json=False, status=422, drawn_with={**form, "fault": fault})
    return answer(request, TEMPLATE, data, as_json=as_json, drawn_with={**form, "bars": gain_bars(found)})


def _weighed(state: QueryDict) -> tuple[dict[str, Any], tuple[Technique, ...]]:
    question = asked(inputs_from_query(state))
    estimated = estimate(question)
    found = techniques(question, estimated)
    data = {
        "verdict": estimated.verdict,
        "summary": estimated.summary,
        "asked": _asked(question),
        "techniques": [asdict(technique) for technique in found],
        "cache_support": cache_support_by_capability(question.facts.version, question.model.head_dim),
    }
    return data, found


def _form(state: QueryDict) -> dict[str, Any]:
    """What the page asks itself, and the rest of the plan, kept as it came."""
    return {
        "state": state,
        "kept": [(name, value) for name, values in state.lists() if name not in ASKED_HERE for value in values],
        "models": ModelSpec.objects.values_list("name", flat=True),
        "gpu_types": GpuType.objects.all(),
        "versions": catalog.known_versions(),
        "workbench_url": address_of(state),
    }


def _asked(question: Question) -> dict[str, Any]:
    return {
        "model": question.model.name,
        "gpu": question.gpu.name,
        "vllm_version": str(question.facts.version),
        "requests": [asdict(kind) for kind in question.requests],
    }
