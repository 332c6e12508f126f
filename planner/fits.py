"""Where a model of ours fits: every GPU type we know, at the newest version's defaults, computed once a state."""

from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db.models import Max

from planner import catalog
from planner.core.engine import EngineArgs
from planner.core.errors import PlanningError
from planner.core.estimate import Question
from planner.core.fits_on import GPU_COUNTS, fits_on
from planner.models import GpuType, ModelSpec


def fits_on_known_gpus(row: ModelSpec) -> dict[str, Any]:
    """Return the counts, the version, and a row of cells for each GPU type, the smallest memory first."""
    return _fits(row.pk, row.updated_at, GpuType.objects.aggregate(at=Max("updated_at"))["at"], GpuType.objects.count())


@lru_cache(maxsize=256)
def _fits(pk: int, updated_at: datetime, gpus_changed_at: datetime | None, gpus: int) -> dict[str, Any]:
    facts = catalog.engine_facts(None)
    heading = {"vllm_version": str(facts.version), "gpu_counts": list(GPU_COUNTS)}
    try:
        model = ModelSpec.objects.get(pk=pk).core()
    except PlanningError as error:
        return {**heading, "rows": [], "unplanned": error.message}
    types = [gpu.core() for gpu in GpuType.objects.filter(device_type="cuda").order_by("total_bytes", "name")]
    if not types:
        return {**heading, "rows": [], "unplanned": ""}
    question = Question(model=model, gpu=types[0], facts=facts, args=EngineArgs(model=model.name), fit=catalog.fit())
    cells = fits_on(question, types)
    rows = [
        {"gpu": gpu.slug, "name": gpu.name, "cells": [asdict(cell) for cell in row]}
        for gpu, row in zip(types, cells, strict=True)
    ]
    return {**heading, "rows": rows, "unplanned": ""}
