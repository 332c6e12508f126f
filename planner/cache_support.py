"""Which of our GPU types read which small KV cache, by vLLM release: one row a compute capability."""

from dataclasses import asdict
from typing import Any

from planner.core.cache_dtypes import cache_dtype_support
from planner.core.engine import Version
from planner.models import GpuType

NAMES_SHOWN = 4


def cache_support_by_capability(version: Version, head_dim: int) -> list[dict[str, Any]]:
    """Return, for each compute capability we have a GPU type of, those types and what they read of each data type."""
    by_capability: dict[tuple[int, int], list[GpuType]] = {}
    for gpu in GpuType.objects.filter(device_type="cuda").exclude(compute_capability="").order_by("name"):
        by_capability.setdefault(gpu.core().compute_capability or (0, 0), []).append(gpu)
    return [
        {
            "compute_capability": rows[0].compute_capability,
            "gpu_types": [gpu.name for gpu in rows[:NAMES_SHOWN]],
            "more_gpu_types": len(rows[NAMES_SHOWN:]),
            "kinds": [asdict(kind) for kind in cache_dtype_support(version, rows[0].core(), head_dim)],
        }
        for _, rows in sorted(by_capability.items())
    ]
