"""Layouts that vLLM does not build because something cannot be divided."""

from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.terms import Reason
from planner.core.weight_bytes import padded_vocabulary


def weight_refusals(model: Model, layout: Layout) -> tuple[Reason, ...]:
    """Return why vLLM would not build this layout, in the order of its boot.

    Source: vLLM `ModelConfig.verify_with_parallel_config` (heads, pipeline), `distributed.utils.divide` and the
    assertions of the model classes (KV heads, dimensions).
    """
    checks = (_heads_refusal, _pipeline_refusal, _kv_heads_refusal, _dimension_refusal)
    return tuple(reason for check in checks if (reason := check(model, layout)) is not None)


def _heads_refusal(model: Model, layout: Layout) -> Reason | None:
    heads, tp = model.num_attention_heads, layout.tensor_parallel_size
    if heads % tp == 0:
        return None
    return Reason(
        rule="heads_tp",
        field="tensor_parallel_size",
        message=f"{heads} attention heads are not divisible by tensor_parallel_size {tp}.",
        remedy=f"choose a tensor-parallel size that divides {heads}, and pipeline parallelism for the rest",
    )


def _pipeline_refusal(model: Model, layout: Layout) -> Reason | None:
    if layout.pipeline_parallel_size == 1 or model.supports_pp:
        return None
    return Reason(
        rule="pp_unsupported",
        field="pipeline_parallel_size",
        message=f"vLLM has no pipeline parallelism for {model.architecture}.",
        remedy="use --pipeline-parallel-size 1",
    )


def _kv_heads_refusal(model: Model, layout: Layout) -> Reason | None:
    kv_heads, tp = model.num_kv_heads, layout.tensor_parallel_size
    if kv_heads % tp == 0 or tp % kv_heads == 0:
        return None
    return Reason(
        rule="kvheads_tp",
        field="tensor_parallel_size",
        message=f"{kv_heads} KV heads can neither be split over nor repeated on {tp} ranks evenly.",
        remedy=f"choose a tensor-parallel size that divides {kv_heads} or is a multiple of it",
    )


def _dimension_refusal(model: Model, layout: Layout) -> Reason | None:
    tp = layout.tensor_parallel_size
    sizes = (("intermediate_size", model.intermediate_size), ("padded vocabulary", padded_vocabulary(model.vocab_size)))
    name, size = next(((name, size) for name, size in sizes if size % tp), ("", 0))
    if not name:
        return None
    return Reason(
        rule="dim_tp",
        field="tensor_parallel_size",
        message=f"{name} {size:,} is not divisible by tensor_parallel_size {tp}.",
        remedy="choose a smaller tensor-parallel size, and pipeline parallelism for the rest",
    )
