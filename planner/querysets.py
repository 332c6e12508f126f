"""The reads: names looked up among our rows, and what a list needs. Core objects are kept as long as their row is."""

from functools import lru_cache
from typing import Any, NoReturn

from django.db import models
from django.db.models import Case, When

from planner import catalog
from planner.core import hardware, model
from planner.core.errors import BadInput, Unknown
from planner.names import bare, slug_of, unknown_name

_SAME_IN_CORE = (
    *("slug", "name", "device_type", "total_bytes", "total_low_bytes", "total_high_bytes", "pcie"),
    *("memory_bandwidth_bytes_per_second", "nvlink_bytes_per_second", "bf16_flops", "fp8_flops", "fp4_flops"),
)


class ModelSpecQuerySet(models.QuerySet[Any]):
    """Reads of the model list."""

    def named(self, name: str) -> "ModelSpecQuerySet":
        """The row of this name, else of the model that the catalog knows by it: short, renamed, or a mirror."""
        own, known = slug_of(name), slug_of(catalog.full_name(name))
        return self.filter(slug__in=[own, known]).order_by(Case(When(slug=own, then=0), default=1))

    def core_named(self, name: str) -> model.Model:
        """Return the model of this name (in any case, or as the catalog knows it too), or raise Unknown."""
        key = self.named(name).values_list("pk", "updated_at").first()
        if key is None:
            raise unknown_name("model", name, self.values_list("name", flat=True))
        rows: Any = self.model
        return model_core(rows, *key)

    def config_named(self, name: str) -> dict[str, Any]:
        """Return the `config.json` of the model of this name, or raise Unknown."""
        config = self.named(name).values_list("config", flat=True).first()
        if config is None:
            raise unknown_name("model", name, self.values_list("name", flat=True))
        return config


@lru_cache(maxsize=512)
def model_core(rows: Any, pk: int, updated_at: object) -> model.Model:
    """Read a configuration once for each state of its row: it costs more than an estimate."""
    row = rows.objects.get(pk=pk)
    return model.model_from_config(row.config, name=row.name)


class GpuTypeQuerySet(models.QuerySet[Any]):
    """Reads of the GPU types."""

    def core_named(self, name: str) -> hardware.Gpu:
        """Return the GPU of this slug or name as `nvidia-smi` prints it, or a MIG slice; else raise Unknown."""
        key = self._key(name)
        if key is None:
            return self._slice_named(name)
        rows: Any = self.model
        return gpu_core(rows, *key)

    def row_named(self, name: str) -> Any:
        """Return the row of this slug or name, or raise Unknown."""
        key = self._key(name)
        if key is None:
            raise unknown_name("gpu", name, self.values_list("slug", flat=True))
        return self.get(pk=key[0])

    def _key(self, name: str) -> tuple[int, object] | None:
        return self.filter(slug=slug_of(name)).values_list("pk", "updated_at").first() or self._aliased(name)

    def _slice_named(self, name: str) -> hardware.Gpu:
        """Slices have no rows: they come with the device that they are a part of."""
        try:
            return catalog.find_gpu(name)
        except Unknown:
            raise unknown_name("gpu", name, self.values_list("slug", flat=True)) from None

    def _aliased(self, name: str) -> tuple[int, object] | None:
        wanted = bare(name)
        for pk, updated_at, own_name, aliases in self.values_list("pk", "updated_at", "name", "aliases"):
            if wanted in {bare(own_name), *map(bare, aliases)}:
                return pk, updated_at
        return None


@lru_cache(maxsize=512)
def gpu_core(rows: Any, pk: int, updated_at: object) -> hardware.Gpu:
    """Return the device for the arithmetic, made once for each state of its row."""
    row = rows.objects.get(pk=pk)
    major, _, minor = row.compute_capability.partition(".")
    return hardware.Gpu(
        **{name: getattr(row, name) for name in _SAME_IN_CORE},
        compute_capability=(int(major), int(minor)) if major else None,
        aliases=tuple(row.aliases),
    )


def immutable() -> BadInput:
    """Return the refusal to change a saved plan."""
    return BadInput(field="plan", message="a saved plan does not change.", fix="save the change as a child of it")


class PlanQuerySet(models.QuerySet[Any]):
    """Reads of the saved plans; they are never written twice."""

    def listed(self) -> "PlanQuerySet":
        """Return what a list shows, without the documents."""
        return self.select_related("created_by").defer("inputs", "document")

    def update(self, **changes: object) -> NoReturn:
        """Refuse: a plan is a record."""
        raise immutable()
