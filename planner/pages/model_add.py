"""Add a model: by its Hugging Face id, by its config.json, or by the figures of its card."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from planner import services
from planner.forms import ModelByHandForm, ModelFromFileForm, ModelFromHubForm, PlannerForm
from planner.models import ModelSpec, Origin
from planner.pages.adding import form_answer
from planner.pages.answer import SignedInRequest, answer, permitted

FORMS = {"hub": ModelFromHubForm, "file": ModelFromFileForm, "hand": ModelByHandForm}
may_add = permitted("planner.add_modelspec", act="add models")


@require_safe
@may_add
def model_new(request: HttpRequest) -> HttpResponse:
    """The three ways."""
    return _add_page(request)


@require_POST
@may_add
@sensitive_post_parameters("token")
def from_hub(request: SignedInRequest) -> HttpResponse:
    """Fetch the configuration of a Hugging Face repository; the token serves this one request."""
    return _added(request, "hub", lambda given: services.model_add_from_hub(user=request.user, **given))


@require_POST
@may_add
def from_file(request: SignedInRequest) -> HttpResponse:
    """Take an uploaded or pasted config.json."""
    return _added(request, "file", lambda given: _add_config(request, given, Origin.UPLOAD))


@require_POST
@may_add
def by_hand(request: SignedInRequest) -> HttpResponse:
    """Take the figures that somebody typed."""
    return _added(request, "hand", lambda given: _add_config(request, given, Origin.HAND))


def _add_config(request: SignedInRequest, given: dict[str, Any], origin: str) -> ModelSpec:
    return services.model_add_from_config(
        user=request.user, name=given["name"], config=given["config"], source="", origin=origin
    )


def _added(request: HttpRequest, way: str, add: Callable[[dict[str, Any]], ModelSpec]) -> HttpResponse:
    return form_answer(
        request,
        FORMS[way](request.POST, request.FILES, auto_id=f"{way}_%s"),
        add=lambda form: add(form.cleaned_data),
        done=lambda row: redirect("model", slug=row.slug),
        again=lambda form: _add_page(request, status=422, **{way: form}),
    )


def _add_page(request: HttpRequest, *, status: int = 200, **forms: PlannerForm) -> HttpResponse:
    drawn_with = {way: forms.get(way) or kind(auto_id=f"{way}_%s") for way, kind in FORMS.items()}
    return answer(request, "planner/model_add.html", {}, as_json=False, status=status, drawn_with=drawn_with)
