"""The workbench: a question as an address, its answer beside it, redrawn while somebody types."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods, require_safe

from planner import catalog
from planner.answers import answer, answered, asked
from planner.core.choices import tensor_parallel_choices
from planner.core.document import unknown_document
from planner.core.engine import Version
from planner.core.errors import BadInput, PlanningError, Unknown
from planner.core.estimate import Question
from planner.models import GpuType, ModelSpec, Plan
from planner.pages.answer import SignedInRequest, permitted
from planner.pages.sheet import sheet_of
from planner.query import inputs_from_query
from planner.question_form import QuestionForm, read_into, state_of
from planner.readers.command import format_command
from planner.services import plan_save

PRESETS = {
    "Burst: 85 at once of 8,192 tokens": ["burst:1:7680:512::85"],
    "Quiet: 10 at once of 1,500 tokens": ["quiet:1:1200:300::10"],
    "Mixed: documents and short questions": ["documents:0.3:7680:512", "questions:0.7:900:200"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the planner says to a state: a document, or a fault, or neither while nothing was asked."""

    question: Question | None = None
    document: dict[str, Any] | None = None
    fault: PlanningError | None = None


def reply_to(state: QueryDict) -> Reply:
    """Ask the planner; nothing is asked before there is a model and a GPU."""
    if not (state.get("model") and state.get("gpu")):
        return Reply()
    question = None
    try:
        question = asked(inputs_from_query(state))
        return Reply(question=question, document=answered(question))
    except Unknown as error:
        return Reply(question=question, document=unknown_document(error))
    except BadInput as fault:
        return Reply(fault=fault)


@require_http_methods(["GET", "HEAD", "POST"])
@permitted("planner.view_modelspec", act="plan here")
def workbench(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """The form and its answer; under `.json`, the answer's document."""
    state = state_of(request.GET)
    if request.method == "POST":
        return _save(request, state)
    if as_json:
        return JsonResponse(answer(inputs_from_query(state)), json_dumps_params={"indent": 2})
    try:
        state = read_into(state)
    except PlanningError as fault:
        return _page(request, state, Reply(fault=fault))
    if not _is_fragment(request) and state.urlencode() != request.GET.urlencode():
        return redirect(address_of(state))
    if _is_fragment(request) and state_of(request.GET).urlencode() != state.urlencode():
        return HttpResponse(headers={"HX-Redirect": address_of(state)})
    return _page(request, state, reply_to(state))


@require_safe
@permitted("planner.view_modelspec", act="plan here")
def workbench_help(request: HttpRequest) -> HttpResponse:
    """What would help: every change planned again in full, each a link to its workbench."""
    state = state_of(request.GET)
    try:
        document = answered(asked(inputs_from_query(state)), with_help=True)
    except PlanningError as fault:
        raise Http404(str(fault)) from fault
    changes = [{**change, "url": _changed(state, change)} for change in document["help"]]
    template = "planner/_help.html" if _is_fragment(request) else "planner/workbench_help.html"
    return render(request, template, {"changes": changes, "workbench_url": address_of(state), "document": document})


def address_of(state: QueryDict, name: str = "workbench") -> str:
    """Return the address that holds a state."""
    query = state.urlencode(safe="/:")
    return f"{reverse(name)}?{query}" if query else reverse(name)


def _changed(state: QueryDict, change: dict[str, Any]) -> str:
    changed = state.copy()
    changed[change["flag"]] = change["value"]
    return address_of(changed)


def _is_fragment(request: HttpRequest) -> bool:
    """Whether htmx wants a part; a page restored from its history is wanted whole."""
    return request.headers.get("HX-Request-Type") == "partial"


def _version(state: QueryDict) -> Version:
    """The version that the form speaks of; a version that cannot be read is the answer's fault, not the form's."""
    try:
        return catalog.engine_facts(state.get("vllm_version")).version
    except PlanningError:
        return catalog.engine_facts(None).version


@permitted("planner.add_plan", act="save plans")
def _save(request: SignedInRequest, state: QueryDict) -> HttpResponse:
    """Freeze the question and its answer; what cannot be saved stays on the workbench with the reason."""
    try:
        plan = plan_save(
            user=request.user,
            inputs=inputs_from_query(state),
            name=request.POST.get("name", ""),
            parent=_parent(state.get("from", "")),
        )
    except PlanningError as fault:
        return _page(request, state, Reply(fault=fault))
    messages.success(request, f"Saved as plan {plan.pk}. It will not change; an edit makes a new one.")
    return redirect("plan", pk=plan.pk)


def _parent(number: str) -> Plan | None:
    if number and not number.isdecimal():
        raise Http404(f"There is no plan {number}.")
    return get_object_or_404(Plan, pk=number) if number else None


def _page(request: HttpRequest, state: QueryDict, reply: Reply) -> HttpResponse:
    is_fragment = _is_fragment(request)
    template = "planner/_workbench_reply.html" if is_fragment else "planner/workbench.html"
    status = 422 if reply.fault else 200
    response = render(request, template, _drawn(state, reply) | {"oob": is_fragment}, status=status)
    patch_vary_headers(response, ["HX-Request-Type"])
    if is_fragment and not request.headers.get("HX-Current-URL", "").endswith(address_of(state)):
        response["HX-Push-Url"] = address_of(state)
    if is_fragment and reply.fault:
        response["HX-Retarget"] = "#problem"
    return response


def _drawn(state: QueryDict, reply: Reply) -> dict[str, Any]:
    understood = _without_fault(state, reply)
    question = understood.question
    return {
        **(sheet_of(reply.document) if reply.document else {}),
        **_gpus(question.gpu.slug if question else state.get("gpu", "")),
        "document": reply.document,
        "fault": reply.fault,
        "form": _form(state, understood, reply.fault),
        "command": format_command(question.args) if question else "",
        "models": ModelSpec.objects.values_list("name", flat=True),
        "presets": _presets(state),
        "url": address_of(state),
        "json_url": address_of(state, "workbench_json"),
        "help_url": address_of(state, "workbench_help") if reply.document else "",
        "techniques_url": address_of(state, "techniques"),
        "parent": state.get("from", ""),
    }


def _gpus(chosen: str) -> dict[str, Any]:
    """The GPU types, and the one that is chosen: among them, or as it was typed."""
    gpu_types = list(GpuType.objects.all())
    is_listed = any(gpu.slug == chosen for gpu in gpu_types)
    return {"gpu_types": gpu_types, "chosen_gpu": chosen, "unlisted_gpu": "" if is_listed else chosen}


def _form(state: QueryDict, understood: Reply, fault: PlanningError | None) -> QuestionForm:
    question = understood.question
    return QuestionForm(
        state,
        version=question.facts.version if question else _version(state),
        versions=reversed(catalog.known_versions()),
        newest=catalog.engine_facts(None).version,
        document=understood.document,
        fault=fault,
        sizes=tensor_parallel_choices(question) if question else (),
    )


def _without_fault(state: QueryDict, reply: Reply) -> Reply:
    """The reply to what can be read: a bad field must not take the defaults of the others from the form."""
    if reply.fault is None:
        return reply
    rest = state.copy()
    rest.pop(reply.fault.field, None)
    return reply_to(rest)


def _presets(state: QueryDict) -> dict[str, str]:
    found = {}
    for label, rows in PRESETS.items():
        preset = state.copy()
        preset.setlist("request", rows)
        found[label] = address_of(preset)
    return found
