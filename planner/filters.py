"""What a list can be narrowed by: one set of filters for the page and for the API."""

from typing import Any

import django_filters as filters
from django.db.models import BigIntegerField, Q, QuerySet

from planner.models import DEVICE_TYPES, Confidence, GpuType, Host, ModelSpec, Origin, Plan

VERDICTS = [("fits", "fits"), ("does_not_fit", "does not fit"), ("refused", "refused")]


def _search(*fields: str) -> filters.CharFilter:
    """Every word must stand in one of the fields."""

    def narrow(rows: QuerySet[Any], _: str, text: str) -> QuerySet[Any]:
        for word in text.split():
            anywhere = Q()
            for field in fields:
                anywhere |= Q((f"{field}__icontains", word))
            rows = rows.filter(anywhere)
        return rows

    return filters.CharFilter(label="Search", method=lambda rows, name, text: narrow(rows, name, text), max_length=200)


class ModelFilter(filters.FilterSet):
    """Models by words, architecture, origin and confidence."""

    search = _search("name", "architecture", "source")
    architecture = filters.CharFilter(lookup_expr="iexact")
    origin = filters.ChoiceFilter(choices=Origin.choices)
    confidence = filters.ChoiceFilter(choices=Confidence.choices)
    ordering = filters.OrderingFilter(fields=["name", "architecture", "created_at"])

    class Meta:
        model = ModelSpec
        fields: list[str] = []


class GpuTypeFilter(filters.FilterSet):
    """GPU types by words, platform, origin and confidence."""

    search = _search("name", "slug", "note")
    device_type = filters.ChoiceFilter(choices=list(DEVICE_TYPES.items()))
    origin = filters.ChoiceFilter(choices=Origin.choices)
    confidence = filters.ChoiceFilter(choices=Confidence.choices)
    ordering = filters.OrderingFilter(
        fields=["name", "total_bytes", "compute_capability", "memory_bandwidth_bytes_per_second", "bf16_flops"]
    )

    class Meta:
        model = GpuType
        fields: list[str] = []


class HostFilter(filters.FilterSet):
    """Hosts by words and GPU type."""

    search = _search("name", "note", "gpu_type__name")
    gpu_type = filters.CharFilter(field_name="gpu_type__slug", label="GPU type")
    ordering = filters.OrderingFilter(fields=["name", "gpu_count", ("gpu_type__name", "gpu_type")])

    class Meta:
        model = Host
        fields: list[str] = []


class PlanFilter(filters.FilterSet):
    """Plans by words, what they plan, the verdict, the person and the day."""

    search = _search("name", "model_name", "gpu_slug", "summary")
    model = filters.CharFilter(field_name="model_name", lookup_expr="iexact", label="Model")
    gpu = filters.CharFilter(field_name="gpu_slug", label="GPU type")
    vllm_version = filters.CharFilter(label="vLLM version")
    verdict = filters.ChoiceFilter(choices=VERDICTS)
    created_by = filters.CharFilter(field_name="created_by__username", label="Saved by")
    parent = filters.NumberFilter(
        field_name="parent_id", label="Child of plan", min_value=1, max_value=BigIntegerField.MAX_BIGINT
    )
    created_after = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gte", label="Saved after")
    created_before = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="lt", label="Saved before")
    ordering = filters.OrderingFilter(fields=["name", "model_name", "gpu_slug", "verdict", "created_at"])

    class Meta:
        model = Plan
        fields: list[str] = []
