"""The catalog in the database: its rows are made and renewed; what people made is left alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import models, transaction
from django.utils import timezone

from planner import catalog
from planner.models import GpuType, ModelSpec, Origin
from planner.names import slug_of

COLUMNS_OF_THE_ROW_ITSELF = {"id", "created_at", "updated_at", "created_by"}
LONGEST_SOURCE = 1000
LONGEST_NOTE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """How many rows of one kind were made, changed, already right, or kept because people made them."""

    made: int
    changed: int
    unchanged: int
    kept: int

    def __str__(self) -> str:
        return f"{self.made} new, {self.changed} changed, {self.unchanged} as they were, {self.kept} of people kept"


def catalog_load() -> dict[str, Loaded]:
    """Bring every model and GPU type of the catalog into the database; safe to repeat.

    A row that people made under the same name stays as it is. Saved plans hold their own copy of what they used.
    """
    with transaction.atomic():
        return {
            "models": _load(map(_model_row, catalog.model_entries())),
            "gpu_types": _load(map(_gpu_row, catalog.gpu_entries())),
        }


def _load(rows: Iterable[Any]) -> Loaded:
    wanted = {row.slug: row for row in rows}
    kind = type(next(iter(wanted.values())))
    present = {row.slug: row for row in kind.objects.filter(slug__in=wanted)}
    made = [row for slug, row in wanted.items() if slug not in present]
    ours = {slug: row for slug, row in present.items() if row.origin == Origin.CATALOG}
    names = [field.attname for field in kind._meta.concrete_fields if field.name not in COLUMNS_OF_THE_ROW_ITSELF]
    changed = [row for slug, row in ours.items() if _renew(row, wanted[slug], names)]
    kind.objects.bulk_create(made)
    kind.objects.bulk_update(changed, [*names, "updated_at"], batch_size=100)
    return Loaded(
        made=len(made),
        changed=len(changed),
        unchanged=len(ours) - len(changed),
        kept=len(present) - len(ours),
    )


def _renew(row: models.Model, wanted: models.Model, names: list[str]) -> bool:
    """Copy what differs, and say whether anything did; the time of change decides what is read again."""
    differing = [name for name in names if getattr(row, name) != getattr(wanted, name)]
    for name in differing:
        setattr(row, name, getattr(wanted, name))
    if differing:
        row.updated_at = timezone.now()  # type: ignore[attr-defined]  # both kinds of row have it
    return bool(differing)


def _model_row(entry: catalog.ModelEntry) -> ModelSpec:
    return ModelSpec(
        name=entry.name,
        slug=slug_of(entry.name),
        architecture=entry.facts.architecture or "",
        config=dict(entry.config),
        source=entry.source,
        confidence=entry.confidence,
        origin=Origin.CATALOG,
    )


def _gpu_row(entry: catalog.GpuEntry) -> GpuType:
    gpu = entry.gpu
    capability = gpu.compute_capability
    return GpuType(
        slug=gpu.slug,
        name=gpu.name,
        device_type=gpu.device_type,
        total_bytes=gpu.total_bytes,
        total_low_bytes=gpu.total_low_bytes,
        total_high_bytes=gpu.total_high_bytes,
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else "",
        memory_bandwidth_bytes_per_second=gpu.memory_bandwidth_bytes_per_second,
        bf16_flops=gpu.bf16_flops,
        fp8_flops=gpu.fp8_flops,
        fp4_flops=gpu.fp4_flops,
        nvlink_bytes_per_second=gpu.nvlink_bytes_per_second,
        pcie=gpu.pcie,
        aliases=list(gpu.aliases),
        source="; ".join(entry.sources)[:LONGEST_SOURCE],
        confidence=entry.confidence,
        note=_note(entry)[:LONGEST_NOTE],
        origin=Origin.CATALOG,
    )


def _note(entry: catalog.GpuEntry) -> str:
    slices = ", ".join(f"{part.count} × {part.value}" for part in entry.slices)
    return f"{entry.note} MIG slices: {slices}.".strip() if slices else entry.note
