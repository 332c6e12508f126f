"""The GPU table: every fact has its source, totals are CUDA's, and names are found as people and tools write them."""

import re

import pytest

from planner import catalog
from planner.catalog.gpu_table import SLICE, TOTAL
from planner.core.errors import Unknown
from planner.core.units import GIB, bytes_from_gib
from planner.names import bare, slug_of

ENTRIES = catalog.gpu_entries()
DEVICES = [entry for entry in ENTRIES if entry.gpu.device_type != "cpu"]
MIB_PER_GIB = 1024


def entry(slug):
    return next(entry for entry in ENTRIES if entry.gpu.slug == slug)


def test_there_are_at_least_forty_gpus_and_the_cpu():
    assert len(DEVICES) >= 40
    assert [e.gpu.slug for e in ENTRIES if e.gpu.is_cpu] == ["cpu"]


def is_founded(fact):
    if fact.source == "unattributed":
        return fact.confidence == "low"
    return re.fullmatch(r"https://\S+", fact.source) and fact.confidence in ("high", "medium", "low")


def test_every_fact_has_a_public_source_or_low_confidence():
    assert [(e.gpu.slug, fact.name) for e in ENTRIES for fact in e.facts if not is_founded(fact)] == []


def test_no_name_stands_for_two_devices():
    owners = {}
    for e in (*ENTRIES, *catalog.slice_entries()):
        for name in {bare(name) for name in (e.gpu.slug, e.gpu.name, *e.gpu.aliases)}:
            assert owners.setdefault(name, e.gpu.slug) == e.gpu.slug


def test_a_slug_is_what_the_name_comes_to():
    assert all(e.gpu.slug == slug_of(e.gpu.name) for e in ENTRIES)


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.gpu.slug)
def test_the_total_is_within_its_range_and_not_above_what_nvml_shows(device):
    gpu, nvml = device.gpu, device.fact("nvml_total_mib")
    assert 0 < gpu.total_low_bytes <= gpu.total_bytes <= gpu.total_high_bytes
    if nvml is not None:
        assert gpu.total_high_bytes <= bytes_from_gib(nvml.value / MIB_PER_GIB) + GIB // 100


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.gpu.slug)
def test_an_interval_that_nobody_read_is_wide_and_says_so(device):
    total = device.fact(TOTAL)
    if total.note.startswith("not read"):
        assert total.confidence == "low"
        assert total.low < 0.98 * total.high


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.gpu.slug)
def test_a_device_has_bandwidth_link_and_capability_where_it_is_planned(device):
    assert device.gpu.memory_bandwidth_bytes_per_second
    assert device.gpu.pcie
    assert (device.gpu.compute_capability is not None) == (device.gpu.device_type == "cuda")


def test_the_a100_has_the_range_that_was_seen():
    a100 = catalog.find_gpu("a100-sxm4-80gb")
    low, central, high = (bytes_from_gib(x) for x in (79.14, 79.15, 79.35))
    assert (a100.total_low_bytes, a100.total_bytes, a100.total_high_bytes) == (low, central, high)
    assert a100.compute_capability == (8, 0)
    assert a100.memory_bandwidth_bytes_per_second == 2039 * 10**9
    assert a100.bf16_flops == 312e12
    assert a100.fp8_flops is None


def test_the_l40s_has_the_dense_figure_not_the_sparse_one():
    assert catalog.find_gpu("l40s").fp8_flops == 733e12


def test_a_turing_card_has_no_bfloat16_rate():
    t4 = entry("t4")
    assert t4.gpu.bf16_flops is None
    assert t4.fact("fp16_dense_tflops").value == 65


@pytest.mark.parametrize(
    ("written", "slug"),
    [
        ("a100-sxm4-80gb", "a100-sxm4-80gb"),
        ("A100 SXM4 80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("nvidia a100_sxm4_80gb", "a100-sxm4-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA H200", "h200-sxm-141gb"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA L40S", "l40s"),
        ("Tesla T4", "t4"),
        ("Tesla V100-SXM2-32GB", "v100-32gb"),
        ("NVIDIA GB10", "gb10-dgx-spark"),
        ("RTX PRO 6000 Blackwell (Server/WS)", "rtx-pro-6000-blackwell-server"),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "a100-sxm4-80gb-mig-3g.40gb"),
        ("CPU", "cpu"),
    ],
)
def test_a_gpu_is_found_as_it_is_written(written, slug):
    assert catalog.find_gpu(written).slug == slug


@pytest.mark.parametrize(
    ("written", "meant"),
    [("h100", "h100-sxm5-80gb"), ("a100-sxm5-80gb", "a100-sxm4-80gb"), ("rtx 4090 ti", "rtx-4090")],
)
def test_an_unknown_name_gets_the_nearest(written, meant):
    with pytest.raises(Unknown) as fault:
        catalog.find_gpu(written)
    assert fault.value.field == "gpu"
    assert meant in fault.value.fix


def test_a_slice_is_a_device_of_its_own_with_a_low_end_below_its_profile():
    gpu = catalog.find_gpu("h200-sxm-141gb-mig-3g.71gb")
    assert gpu.total_bytes == bytes_from_gib(69.5)
    assert gpu.total_low_bytes < gpu.total_bytes == gpu.total_high_bytes
    assert gpu.compute_capability == (9, 0)
    assert gpu.nvlink_bytes_per_second is None


@pytest.mark.parametrize("device", [e for e in ENTRIES if e.slices], ids=lambda device: device.gpu.slug)
def test_the_slices_of_a_device_fit_into_it(device):
    for part in device.slices:
        assert part.name == SLICE
        if part.memory_gib is not None:
            assert part.count * bytes_from_gib(part.memory_gib) <= device.gpu.total_high_bytes


def test_the_cpu_leaves_its_memory_to_the_question():
    assert catalog.find_gpu("cpu").total_bytes == 0


def test_a_platform_that_is_not_planned_is_known_by_name():
    assert catalog.find_gpu("AMD Instinct MI300X").device_type == "rocm"
