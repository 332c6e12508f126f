"""GPU types: what each device has and where that is known from; added by hand or from a CSV file."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from planner import catalog
from planner.filters import GpuTypeFilter
from planner.forms import CsvForm, GpuTypeForm
from planner.imports import gpu_types_import_csv
from planner.models import GpuType, Origin
from planner.pages.adding import csv_answer, form_answer
from planner.pages.answer import SignedInRequest, answer, permitted
from planner.pages.hosts import host_row
from planner.pages.lists import listed, page_of, refuse_misread
from planner.services import gpu_type_add

COLUMNS = [
    *("slug", "name", "device_type", "total_bytes", "total_low_bytes", "total_high_bytes", "compute_capability"),
    *("memory_bandwidth_bytes_per_second", "bf16_flops", "fp8_flops", "fp4_flops"),
    *("nvlink_bytes_per_second", "pcie", "aliases", "source", "confidence", "note", "origin"),
]

FACTS = {
    "total_bytes": ("Memory, as CUDA sees it", "bytes"),
    "total_low_bytes": ("Memory, lowest seen", "bytes"),
    "total_high_bytes": ("Memory, highest seen", "bytes"),
    "memory_bandwidth_bytes_per_second": ("Memory bandwidth", "rate"),
    "bf16_flops": ("bf16, dense", "flops"),
    "fp8_flops": ("fp8, dense", "flops"),
    "fp4_flops": ("fp4, dense", "flops"),
    "compute_capability": ("Compute capability", "value"),
    "nvlink_bytes_per_second": ("NVLink, both directions", "rate"),
    "pcie": ("PCIe", "value"),
}

CATALOG_FACTS = {
    "cuda_total_gib": ("Memory, as CUDA sees it", "GiB"),
    "nvml_total_mib": ("Memory, as nvidia-smi shows it (NVML)", "MiB"),
    "memory_bandwidth_gb_per_second": ("Memory bandwidth", "GB/s"),
    "bf16_dense_tflops": ("bf16, dense", "TFLOPS"),
    "fp16_dense_tflops": ("fp16, dense (no bf16)", "TFLOPS"),
    "fp8_dense_tflops": ("fp8, dense", "TFLOPS"),
    "fp4_dense_tflops": ("fp4, dense", "TFLOPS"),
    "compute_capability": ("Compute capability", ""),
    "nvlink_gb_per_second": ("NVLink, both directions", "GB/s"),
    "pcie": ("PCIe", ""),
    "mig_slice": ("MIG slice", ""),
}


@require_safe
@permitted("planner.view_gputype", act="see GPU types")
def gpu_type_list(request: HttpRequest, *, as_json: bool = False) -> HttpResponse:
    """Every GPU type, narrowed and sorted by the address."""
    narrowed = GpuTypeFilter(request.GET, queryset=GpuType.objects.all())
    if as_json:
        refuse_misread(narrowed, request.GET)
    page = page_of(request, narrowed.qs)
    drawn_with = {"page_obj": page, "filter": narrowed}
    return answer(
        request, "planner/gpu_type_list.html", listed(page, gpu_type_row), as_json=as_json, drawn_with=drawn_with
    )


def gpu_type_row(gpu: GpuType) -> dict[str, Any]:
    """One GPU type as data: bytes, bytes a second, operations a second."""
    return {**{name: getattr(gpu, name) for name in COLUMNS}, "url": reverse("gpu_type", args=[gpu.slug])}


@require_safe
@permitted("planner.view_gputype", act="see GPU types")
def gpu_type_detail(request: HttpRequest, slug: str, *, as_json: bool = False) -> HttpResponse:
    """One GPU type: every fact with its source, and the hosts that have it."""
    gpu = get_object_or_404(GpuType, slug=slug)
    hosts = [host_row(host) for host in gpu.hosts.select_related("gpu_type")]
    data = {"gpu": gpu_type_row(gpu), "facts": gpu_type_facts(gpu), "hosts": hosts}
    return answer(request, "planner/gpu_type_detail.html", data, as_json=as_json)


def gpu_type_facts(gpu: GpuType) -> list[dict[str, Any]]:
    """Every fact of a row with where it is known from; what nobody stated is left out.

    A row of the catalog has a source for each fact; a row that somebody added has one for all.
    """
    stated = catalog.facts_of_gpu(gpu.slug) if gpu.origin == Origin.CATALOG else ()
    return [_catalog_fact(fact) for fact in stated] or [
        {"label": label, "value": value, "unit": unit, "source": gpu.source, "confidence": gpu.confidence, "note": ""}
        for name, (label, unit) in FACTS.items()
        if (value := getattr(gpu, name))
    ]


def _catalog_fact(fact: catalog.GpuFact) -> dict[str, Any]:
    label, unit = CATALOG_FACTS[fact.name]
    return {
        "label": label,
        "value": fact.value,
        "unit": unit,
        "low": fact.low,
        "high": fact.high,
        "count": fact.count,
        "source": fact.source,
        "confidence": fact.confidence,
        "note": fact.note,
    }


@permitted("planner.add_gputype", act="add GPU types")
def gpu_type_new(request: SignedInRequest) -> HttpResponse:
    """Add one GPU type by hand; what was typed stays when it is refused."""
    if request.method != "POST":
        return _add_page(request, csv_form=CsvForm(), status=200)
    return form_answer(
        request,
        GpuTypeForm(request.POST),
        add=lambda form: gpu_type_add(user=request.user, **form.row),
        done=lambda row: redirect("gpu_type", slug=row.slug),
        again=lambda form: _add_page(request, form=form, csv_form=CsvForm(), status=422),
    )


@require_POST
@permitted("planner.add_gputype", act="add GPU types")
def gpu_type_import(request: HttpRequest) -> HttpResponse:
    """Add the GPU types of a CSV file: all of them, or none with every fault by its line."""
    return csv_answer(request, importer=gpu_types_import_csv, noun="GPU type", done="gpu_types", again=_add_page)


def _add_page(request: HttpRequest, *, status: int, **forms: Any) -> HttpResponse:
    forms.setdefault("form", GpuTypeForm())
    drawn_with = {**forms, "columns": list(GpuTypeForm.base_fields)}
    return answer(request, "planner/gpu_type_add.html", {}, as_json=False, status=status, drawn_with=drawn_with)
