"""What today's arithmetic says to a question that a saved plan froze: nothing is overwritten, both answers stand."""

import json
from collections.abc import Mapping
from typing import Any

from planner.answers import answer
from planner.content import canonical_json
from planner.core.document import unknown_document
from planner.core.errors import BadInput, PlanningError, Unknown
from planner.inputs import args_of
from planner.models import Plan
from planner.readers.command import format_command

# Not part of the answer itself: who computed it, and what was asked for besides.
_ASIDE = frozenset({"core_version", "help"})


def answer_today(plan: Plan) -> dict[str, Any] | None:
    """Return the document that the plan's inputs get now, or None where it is the one that was saved."""
    try:
        today = answer(plan.inputs)
    except BadInput as error:
        today = unknown_document(Unknown(field=error.field, message=error.message, fix=error.fix))
    as_kept = json.loads(json.dumps(today))
    return None if _essence(as_kept) == _essence(plan.document) else as_kept


def command_of(plan: Plan) -> str:
    """Return the vLLM command that the plan is about, or "" where today's readers no longer take its inputs."""
    try:
        return format_command(args_of(plan.inputs))
    except PlanningError:
        return ""


def _essence(document: Mapping[str, Any]) -> str:
    return canonical_json({key: value for key, value in document.items() if key not in _ASIDE})
