"""What page and API do with a question: look names up among our rows, ask the arithmetic, hand out the document."""

from collections.abc import Mapping
from typing import Any

from planner.core.advice import what_would_help
from planner.core.document import document, unknown_document
from planner.core.errors import Unknown
from planner.core.estimate import Question, estimate
from planner.core.sweep import sweep, utilizations_of
from planner.models import GpuType, ModelSpec
from planner.questions import axes_of, question_from_inputs


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


def swept(inputs: Mapping[str, Any], axes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every combination of the flags in `axes` holds; raises BadInput, and Unknown for the whole sweep."""
    question = asked(inputs)
    read = axes_of(axes, vllm_version=inputs.get("vllm_version"))
    rows = sweep(question, read)
    return {
        "gpu_memory_utilization": list(utilizations_of(question, read)),
        "rows": [
            {
                "flags": dict(row.flags),
                "max_model_len": row.max_model_len,
                "boots": row.boots.tolist(),
                "num_gpu_blocks": row.num_gpu_blocks.tolist(),
                "requests": row.requests.tolist(),
                "reason": row.reason,
            }
            for row in rows
        ],
    }
