"""What the page and the API do with a question: look its names up among our rows, ask the arithmetic, hand out the document."""

from collections.abc import Mapping
from typing import Any

from planner.core.advice import what_would_help
from planner.core.document import document, unknown_document
from planner.core.errors import Unknown
from planner.core.estimate import estimate
from planner.models import GpuType, ModelSpec
from planner.questions import question_from_inputs


def answer(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of these inputs; BadInput passes through, what we do not know is a verdict."""
    try:
        question = question_from_inputs(
            inputs, find_model=ModelSpec.objects.core_named, find_gpu=GpuType.objects.core_named
        )
        estimated = estimate(question)
        changes = what_would_help(question, estimated) if "help" in (inputs.get("include") or ()) else None
    except Unknown as error:
        return unknown_document(error)
    return document(question, estimated, changes)
