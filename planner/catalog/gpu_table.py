"""The GPU types of gpus.yaml: whole devices, and the MIG slices whose memory is known, as devices of their own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from planner.catalog.tables import read_table
from planner.core.hardware import Gpu
from planner.core.units import bytes_from_gib
from planner.core.words import flops_from_tera, rate_from_gb_per_second
from planner.names import bare, slug_of, unknown_name

TOTAL = "cuda_total_gib"
SLICE = "mig_slice"
SLICE_TOTAL_SHARE = 0.97  # a slice shows a little less to CUDA than its profile says


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFact:
    """One line of the table, its source as an address; `low` and `high` are given where it is a range."""

    name: str
    value: Any
    source: str
    confidence: str
    low: float | None = None
    high: float | None = None
    note: str = ""
    count: int | None = None
    memory_gib: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuEntry:
    """A device with every fact that is known of it; `note` is what to beware of."""

    gpu: Gpu
    facts: tuple[GpuFact, ...]
    note: str = ""

    def fact(self, name: str) -> GpuFact | None:
        """Return the fact of this name, or None where it is not known."""
        return next((fact for fact in self.facts if fact.name == name), None)

    @property
    def slices(self) -> tuple[GpuFact, ...]:
        """The MIG profiles of this device."""
        return tuple(fact for fact in self.facts if fact.name == SLICE)

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the facts come from, each address once."""
        return tuple(dict.fromkeys(fact.source for fact in self.facts))

    @property
    def confidence(self) -> str:
        """How far the total is to be trusted: everything that is planned rests on it."""
        total = self.fact(TOTAL)
        return total.confidence if total else "high"


@cache
def gpu_entries() -> tuple[GpuEntry, ...]:
    """Return every whole device of the catalog."""
    table = read_table("gpus.yaml")
    return tuple(_entry(row, table["sources"]) for row in table["gpus"])


@cache
def slice_entries() -> tuple[GpuEntry, ...]:
    """Return every MIG slice whose memory is known."""
    return tuple(part for whole in gpu_entries() for part in _slices(whole))


@cache
def gpus() -> tuple[Gpu, ...]:
    """Return every whole device of the catalog for the arithmetic."""
    return tuple(entry.gpu for entry in gpu_entries())


def facts_of_gpu(slug: str) -> tuple[GpuFact, ...]:
    """Return every fact that is known of the device of this slug, none where the catalog does not have it."""
    return next((entry.facts for entry in gpu_entries() if entry.gpu.slug == slug), ())


def find_gpu(name: str) -> Gpu:
    """Return the device or slice of this slug or of any name that nvidia-smi prints, in any case or spacing.

    Raises Unknown with the nearest names.
    """
    found = _by_bare_name().get(bare(name))
    if found is None:
        raise unknown_name("gpu", name, [gpu.slug for gpu in gpus()])
    return found


@cache
def _by_bare_name() -> Mapping[str, Gpu]:
    every = (entry.gpu for entry in (*slice_entries(), *gpu_entries()))
    return {bare(name): gpu for gpu in every for name in (*gpu.aliases, gpu.name, gpu.slug)}


def _entry(row: Mapping[str, Any], sources: Mapping[str, str]) -> GpuEntry:
    facts = tuple(_fact(line, sources) for line in row["facts"])
    by_name = {fact.name: fact for fact in facts}
    low, central, high = _total_gib(by_name.get(TOTAL))
    gpu = Gpu(
        slug=slug_of(row["name"]),
        name=row["name"],
        device_type=row.get("platform", "cuda"),
        total_bytes=bytes_from_gib(central),
        total_low_bytes=bytes_from_gib(low),
        total_high_bytes=bytes_from_gib(high),
        compute_capability=_capability(by_name.get("compute_capability")),
        memory_bandwidth_bytes_per_second=_rate(by_name.get("memory_bandwidth_gb_per_second")),
        bf16_flops=_flops(by_name.get("bf16_dense_tflops")),
        fp8_flops=_flops(by_name.get("fp8_dense_tflops")),
        fp4_flops=_flops(by_name.get("fp4_dense_tflops")),
        nvlink_bytes_per_second=_rate(by_name.get("nvlink_gb_per_second")),
        pcie=by_name["pcie"].value if "pcie" in by_name else "",
        aliases=tuple(row["aliases"]),
    )
    return GpuEntry(gpu=gpu, facts=facts, note=row.get("note", ""))


def _fact(line: Mapping[str, Any], sources: Mapping[str, str]) -> GpuFact:
    source = line["source"]
    where = source if source == "unattributed" else sources[source]
    named = {key: value for key, value in line.items() if key not in ("fact", "source")}
    return GpuFact(name=line["fact"], source=where, **named)


def _total_gib(fact: GpuFact | None) -> tuple[float, float, float]:
    """The CPU platform has no total of its own: the host's memory is given with the question."""
    if fact is None:
        return 0.0, 0.0, 0.0
    central = float(fact.value)
    return (
        central if fact.low is None else fact.low,
        central,
        central if fact.high is None else fact.high,
    )


def _capability(fact: GpuFact | None) -> tuple[int, int] | None:
    if fact is None:
        return None
    major, _, minor = fact.value.partition(".")
    return int(major), int(minor)


def _rate(fact: GpuFact | None) -> int | None:
    return None if fact is None else rate_from_gb_per_second(fact.value)


def _flops(fact: GpuFact | None) -> float | None:
    return None if fact is None else flops_from_tera(fact.value)


def _slices(whole: GpuEntry) -> Iterator[GpuEntry]:
    for fact in whole.slices:
        if fact.memory_gib is not None:
            yield _slice(whole, fact, fact.memory_gib)


def _slice(whole: GpuEntry, fact: GpuFact, memory_gib: float) -> GpuEntry:
    """A slice has no link to its neighbours, and its share of the rates is not stated."""
    name = f"{whole.gpu.name} MIG {fact.value}"
    total = GpuFact(
        name=TOTAL,
        value=memory_gib,
        low=SLICE_TOTAL_SHARE * memory_gib,
        high=memory_gib,
        source=fact.source,
        confidence="low",
        note="the memory of the profile; CUDA may show up to 3 % less",
    )
    gpu = replace(
        whole.gpu.with_total(bytes_from_gib(memory_gib)),
        slug=slug_of(name),
        name=name,
        total_low_bytes=bytes_from_gib(SLICE_TOTAL_SHARE * memory_gib),
        memory_bandwidth_bytes_per_second=None,
        bf16_flops=None,
        fp8_flops=None,
        fp4_flops=None,
        nvlink_bytes_per_second=None,
        aliases=tuple(f"{alias} MIG {fact.value}" for alias in whole.gpu.aliases),
    )
    kept = tuple(f for f in whole.facts if f.name in ("compute_capability", "pcie"))
    return GpuEntry(gpu=gpu, facts=(total, *kept), note=f"One of {fact.count} slices that a {whole.gpu.name} yields.")
