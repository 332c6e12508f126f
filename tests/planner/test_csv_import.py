"""Fleets from a spreadsheet: all lines, or none and every fault."""

import pytest
from auditlog.models import LogEntry

from planner.core.units import GIB
from planner.imports import gpu_types_import_csv, hosts_import_csv
from planner.models import GpuType, Host
from tests.factories import a_gpu_type, a_host


def faults(found):
    return [(fault.line, fault.column) for fault in found.faults]


def test_hosts_are_added_with_their_defaults(alice):
    a_gpu_type(alice, aliases=["NVIDIA Test-80GB"])
    text = "name,gpu_type,gpu_count,note\nnode-1,test-80gb,8,rack 3\nnode-2,NVIDIA Test-80GB,,\n"
    assert hosts_import_csv(user=alice, text=text).added == 2
    assert list(Host.objects.values_list("name", "gpu_type__slug", "gpu_count", "note")) == [
        ("node-1", "test-80gb", 8, "rack 3"),
        ("node-2", "test-80gb", 1, ""),
    ]
    assert LogEntry.objects.get_for_model(Host).filter(actor=alice).count() == 2


def test_one_bad_line_keeps_all_lines_out_and_every_fault_is_told(alice):
    a_host(alice, "node-1", gpu_type=a_gpu_type(alice))
    lines = ["node-1,test-80gb,8", "node-2,test-80gb,8", "node-3,unheard-of,8", "node-4,test-80gb,many", ",test-80gb,1"]
    text = "\n".join(["name,gpu_type,gpu_count", *lines])
    found = hosts_import_csv(user=alice, text=text)
    assert found.added == 0
    assert faults(found) == [(2, "name"), (4, "gpu_type"), (5, "gpu_count"), (6, "name")]
    assert list(Host.objects.values_list("name", flat=True)) == ["node-1"]


def test_the_same_host_twice_in_a_file_is_told_on_the_second_line(alice):
    a_gpu_type(alice)
    assert faults(hosts_import_csv(user=alice, text="name,gpu_type\nn,test-80gb\nn,test-80gb\n")) == [(3, "name")]


def test_gpu_types_come_in_the_units_of_datasheets(alice):
    columns = "name,total_gib,memory_bandwidth_gb_per_second,bf16_tflops,aliases"
    text = f"{columns}\nNew 80GB,79.25,2039,312,NVIDIA New|New SXM\n"
    assert gpu_types_import_csv(user=alice, text=text).added == 1
    row = GpuType.objects.get()
    assert row.total_bytes == row.total_low_bytes == row.total_high_bytes == int(79.25 * GIB)
    assert row.memory_bandwidth_bytes_per_second == 2_039_000_000_000
    assert row.bf16_flops == 312e12
    assert row.aliases == ["NVIDIA New", "New SXM"]


@pytest.mark.parametrize("text", ["", "name\n", "name,gpu_type\n", "nonsense", "name,gpu_type,colour\na,b,c\n", "\x00"])
def test_what_is_no_such_table_is_told_and_adds_nothing(alice, text):
    found = hosts_import_csv(user=alice, text=text)
    assert found.faults
    assert not Host.objects.exists()
