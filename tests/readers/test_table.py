"""CSV files as people export them: every fault names its line."""

import pytest

from planner.readers.table import MAX_LINES, read_table

COLUMNS = ("name", "gpu_type", "gpu_count")


def read(text):
    return read_table(text, columns=COLUMNS, required=("name", "gpu_type"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_comma_semicolon_and_tab_are_understood(delimiter):
    text = f"name{delimiter}gpu_type{delimiter}gpu_count\nnode-1{delimiter}a100-sxm4-80gb{delimiter}8\n"
    (line,) = read(text).lines
    assert line.cells == {"name": "node-1", "gpu_type": "a100-sxm4-80gb", "gpu_count": "8"}


def test_lines_are_numbered_as_an_editor_counts_blank_ones_included():
    table = read("name,gpu_type\n\nnode-1,l4\n\nnode-2,l4\n")
    assert [line.number for line in table.lines] == [3, 5]


def test_a_header_may_have_spaces_capitals_dashes_and_a_byte_order_mark():
    (line,) = read("\ufeffName,GPU type,gpu-count\nnode-1,l4,2\n").lines
    assert line.cells["gpu_type"] == "l4"
    assert line.cells["gpu_count"] == "2"


def test_an_unknown_column_names_the_nearest_one():
    (fault,) = read("name,gpu_type,gpu_cuont\nnode-1,l4,2\n").faults
    assert (fault.line, fault.column) == (1, "gpu_cuont")
    assert "gpu_count" in fault.message


def test_a_missing_column_and_a_doubled_one_are_both_told():
    faults = read("name,name\nnode-1,node-1\n").faults
    assert {fault.column for fault in faults} == {"name", "gpu_type"}


def test_a_line_with_too_many_cells_is_told_and_the_others_are_still_read():
    table = read("name,gpu_type\nnode-1,l4\nnode-2,l4,8,9\n")
    assert [fault.line for fault in table.faults] == [3]
    assert [line.number for line in table.lines] == [2]


@pytest.mark.parametrize("text", ["", "\n\n", "name,gpu_type\n"])
def test_a_file_without_lines_says_what_to_add(text):
    table = read(text)
    assert table.lines == ()
    assert table.faults[0].message


def test_a_file_that_is_too_long_is_not_read_in_part():
    table = read("name,gpu_type\n" + "node,l4\n" * (MAX_LINES + 1))
    assert table.lines == ()
    assert str(MAX_LINES) in table.faults[0].message


def test_short_lines_leave_the_last_columns_out():
    (line,) = read("name,gpu_type,gpu_count\nnode-1,l4\n").lines
    assert "gpu_count" not in line.cells
