"""A CSV file as people export it: lines by column name, and every fault with its line number."""

import csv
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_LINES = 2000
_DELIMITERS = ",;\t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of the file: its line number as an editor counts, and its cells by column."""

    number: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong in one line, in which column ("" for the whole line), and what to do."""

    line: int
    column: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The lines that could be read, and the faults of those that could not."""

    lines: tuple[Line, ...]
    faults: tuple[Fault, ...]


def read_table(text: str, *, columns: Sequence[str], required: Sequence[str]) -> Table:
    """Return the lines of a CSV text with a header row; comma, semicolon and tab are all understood."""
    rows = _rows(text)
    if not rows:
        return _only(Fault(line=1, column="", message="The file is empty. Start with a header line."))
    number, cells = rows[0]
    header = [_name(cell) for cell in cells]
    faults = [*_header_faults(number, header, columns, required)]
    if faults:
        return Table(lines=(), faults=tuple(faults))
    if len(rows) == 1:
        return _only(Fault(line=number, column="", message="There is a header and no line below it."))
    if len(rows) > MAX_LINES:
        return _only(Fault(line=MAX_LINES, column="", message=f"At most {MAX_LINES} lines at a time; split the file."))
    return _body(rows[1:], header)


def _rows(text: str) -> list[tuple[int, list[str]]]:
    content = text.removeprefix("\ufeff")
    reader = csv.reader(content.splitlines(), delimiter=_delimiter(content))
    return [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]


def _delimiter(content: str) -> str:
    header = next((line for line in content.splitlines() if line.strip()), "")
    return max(_DELIMITERS, key=header.count)


def _name(cell: str) -> str:
    return cell.strip().lower().replace(" ", "_").replace("-", "_")


def _header_faults(number: int, header: Sequence[str], columns: Sequence[str], required: Sequence[str]) -> list[Fault]:
    unknown = [
        Fault(line=number, column=name, message=_unknown(name, columns)) for name in header if name not in columns
    ]
    twice = [
        Fault(line=number, column=name, message="This column stands twice.")
        for name in dict.fromkeys(header)
        if header.count(name) > 1
    ]
    missing = [
        Fault(line=number, column=name, message="This column is missing and every line needs it.")
        for name in required
        if name not in header
    ]
    return [*unknown, *twice, *missing]


def _unknown(name: str, columns: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(name, columns, n=1)
    return f"There is no such column; did you mean {nearest[0]}?" if nearest else f"Columns are {', '.join(columns)}."


def _body(rows: Sequence[tuple[int, list[str]]], header: Sequence[str]) -> Table:
    fitting = [(number, row) for number, row in rows if len(row) <= len(header)]
    too_long = [
        Fault(
            line=number, column="", message=f"{len(row)} cells under {len(header)} columns; quote a cell with a comma."
        )
        for number, row in rows
        if len(row) > len(header)
    ]
    lines = [Line(number=number, cells=dict(zip(header, map(str.strip, row), strict=False))) for number, row in fitting]
    return Table(lines=tuple(lines), faults=tuple(too_long))


def _only(fault: Fault) -> Table:
    return Table(lines=(), faults=(fault,))
