"""Many rows at once from a CSV file: all of them, or none and every fault with its line."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.db import transaction

from planner.core.errors import PlanningError
from planner.forms import GpuTypeForm, HostForm, PlannerForm
from planner.readers.table import Fault, Line, read_table
from planner.services import gpu_type_add, host_add


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What came of a file: rows added, or the faults that kept all of them out."""

    added: int = 0
    faults: Sequence[Fault] = field(default_factory=tuple)


def gpu_types_import_csv(*, user: User, text: str) -> Import:
    """Add the GPU types of a CSV text; columns are the fields of the GPU-type form."""
    return _import(text, GpuTypeForm, lambda form: gpu_type_add(user=user, **form.row))


def hosts_import_csv(*, user: User, text: str) -> Import:
    """Add the hosts of a CSV text with the columns name, gpu_type, gpu_count and note."""
    return _import(text, HostForm, lambda form: host_add(user=user, **form.cleaned_data))


def _import(text: str, kind: type[PlannerForm], add: Callable[..., object]) -> Import:
    required = [name for name, item in kind.base_fields.items() if item.required and item.initial is None]
    table = read_table(text, columns=list(kind.base_fields), required=required)
    with transaction.atomic():
        faults = [*table.faults, *(fault for line in table.lines for fault in _line(line, kind, add))]
        transaction.set_rollback(bool(faults))
    return Import(faults=faults) if faults else Import(added=len(table.lines))


def _line(line: Line, kind: type[PlannerForm], add: Callable[..., object]) -> Iterator[Fault]:
    given = {name: cell for name, cell in line.cells.items() if cell}
    defaults = {name: item.initial for name, item in kind.base_fields.items() if item.initial is not None}
    form = kind({**defaults, **given})
    if not form.is_valid():
        for name, messages in form.errors.items():
            yield from (Fault(line=line.number, column=name, message=str(message)) for message in messages)
        return
    try:
        add(form)
    except PlanningError as fault:
        yield Fault(line=line.number, column=fault.field, message=f"{fault.message} Fix: {fault.fix}")
