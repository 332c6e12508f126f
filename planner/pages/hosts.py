"""Hosts: the machines one has, what is in each, and how they get on the list."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from planner.filters import HostFilter
from planner.forms import CsvForm, HostForm
from planner.imports import hosts_import_csv
from planner.models import GpuType, Host
from planner.pages.adding import csv_answer, form_answer
from planner.pages.answer import SignedInRequest, answer, permitted
from planner.pages.lists import listed, page_of, refuse_misread
from planner.services import host_add


@require_safe
@permitted("planner.view_host", act="see hosts")
def host_list(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Every machine, narrowed and sorted by the address."""
    narrowed = HostFilter(request.GET, queryset=Host.objects.select_related("gpu_type"))
    if as_json:
        refuse_misread(narrowed, request.GET)
    page = page_of(request, narrowed.qs)
    drawn_with = {"page_obj": page, "filter": narrowed}
    return answer(request, "planner/host_list.html", listed(page, host_row), as_json=as_json, drawn_with=drawn_with)


def host_row(host: Host) -> dict[str, Any]:
    """One machine as data."""
    return {
        "name": host.name,
        "gpu_type": host.gpu_type.slug,
        "gpu_name": host.gpu_type.name,
        "gpu_count": host.gpu_count,
        "note": host.note,
        "url": reverse("host", args=[host.pk]),
    }


@require_safe
@permitted("planner.view_host", act="see hosts")
def host_detail(request: HttpRequest, pk: int, *, as_json: bool = False) -> HttpResponse:
    """One machine."""
    host = get_object_or_404(Host.objects.select_related("gpu_type"), pk=pk)
    return answer(request, "planner/host_detail.html", {"host": host_row(host)}, as_json=as_json)


@permitted("planner.add_host", act="add hosts")
def host_new(request: SignedInRequest) -> HttpResponse:
    """Add one machine by hand; what was typed stays when it is refused."""
    if request.method != "POST":
        return _add_page(request, csv_form=CsvForm(), status=200)
    return form_answer(
        request,
        HostForm(request.POST),
        add=lambda form: host_add(user=request.user, **form.cleaned_data),
        done=lambda row: redirect("host", pk=row.pk),
        again=lambda form: _add_page(request, form=form, csv_form=CsvForm(), status=422),
    )


@require_POST
@permitted("planner.add_host", act="add hosts")
def host_import(request: HttpRequest) -> HttpResponse:
    """Add the machines of a CSV file: all of them, or none with every fault by its line."""
    return csv_answer(request, importer=hosts_import_csv, noun="host", done="hosts", again=_add_page)


def _add_page(request: HttpRequest, *, status: int, **forms: Any) -> HttpResponse:
    forms.setdefault("form", HostForm())
    drawn_with = {
        **forms,
        "columns": list(HostForm.base_fields),
        "gpu_types": GpuType.objects.values_list("slug", "name"),
    }
    return answer(request, "planner/host_add.html", {}, as_json=False, status=status, drawn_with=drawn_with)
