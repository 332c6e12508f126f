"""Several faults of one input, and what mends each kind of fault."""

from collections.abc import Sequence

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from planner.core.errors import BadInput

_FIXES = {
    "required": "add this field",
    "null": "give a value, or leave the field out",
    "blank": "give a value",
    "empty": "give at least one",
    "unique": "choose another name, or use the one that is there",
    "does_not_exist": "choose one of the list",
    "invalid_choice": "choose one of the values allowed",
    "max_length": "shorten it",
    "max_value": "give a smaller number",
    "min_value": "give a larger number",
    "unknown_field": "rename it or leave it out",
    "invalid": "give a value of the type that the documentation at /api/ states",
    "not_a_list": "send a list",
    "not_a_dict": "send an object",
    "null_characters_not_allowed": "remove the NUL character",
}
_FIELDS = {NON_FIELD_ERRORS: "", "slug": "name"}  # nobody types a slug: it is made of the name


def fix_for(code: str | None) -> str:
    """Return what to do about a fault that a validator names by this code."""
    return _FIXES.get(code or "", "correct the value")


class BadInputs(BadInput):
    """Several faults at once; it reads as the first, and `faults` has them all."""

    def __init__(self, faults: Sequence[BadInput]) -> None:
        first = faults[0]
        super().__init__(field=first.field, message=first.message, fix=first.fix)
        self.faults = tuple(faults)


def bad_inputs(error: ValidationError) -> BadInputs:
    """Return a model's validation errors as faults that name their fields."""
    found = {
        (_FIELDS.get(field, field), fault.code): BadInput(
            field=_FIELDS.get(field, field), message=" ".join(fault.messages), fix=fix_for(fault.code)
        )
        for field, faults in error.error_dict.items()
        for fault in faults
    }
    return BadInputs(list(found.values()))
