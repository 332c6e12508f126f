"""What page and API do with a question: look names up among our rows, ask the arithmetic, hand out the document."""

from collections.abc import Mapping
from typing import Any

from planner.core.advice import what_would_help
from planner.core.document import document, unknown_document
from planner.core.errors import Unknown
from planner.core.estimate import Question, estimate
from planner.models import GpuType, ModelSpec
from planner.questions import question_from_inputs


def answer(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of these inputs; BadInput passes through, what we do not know is a verdict."""
    try:
        return answered(asked(inputs), with_help="help" in (inputs.get("include") or ()))
    except Unknown as error:
        return unknown_document(error)


def asked(inputs: Mapping[str, Any]) -> Question:
    """Return the question of these inputs, its names looked up among our rows; raises BadInput and Unknown."""
    return question_from_inputs(
        inputs,
        find_model=ModelSpec.objects.core_named,
        find_gpu=GpuType.objects.core_named,
        find_config=ModelSpec.objects.config_named,
    )


def answered(question: Question, *, with_help: bool = False) -> dict[str, Any]:
    """Return the document of a question; raises BadInput and Unknown."""
    estimated = estimate(question)
    return document(question, estimated, what_would_help(question, estimated) if with_help else None)
