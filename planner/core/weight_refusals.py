"""Layouts that vLLM does not build because something cannot be divided."""

from collections.abc import Iterator

from planner.core.cache_layer import AttentionCache, Cache, StateCache
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.modules import Experts, Linear, Split
from planner.core.terms import Reason
from planner.core.weight_bytes import padded_vocabulary


def weight_refusals(model: Model, layout: Layout) -> tuple[Reason, ...]:
    """Return why vLLM would not build this layout, in the order of its boot.

    Source: vLLM `ModelConfig.verify_with_parallel_config` (heads, pipeline), `distributed.utils.divide` and the
    assertions of the model classes (KV heads, dimensions).
    """
    checks = (
        _heads_refusal,
        _pipeline_refusal,
        _borrowed_keys_refusal,
        _kv_heads_refusal,
        _experts_refusal,
        _states_refusal,
        _dimension_refusal,
    )
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


def _borrowed_keys_refusal(model: Model, layout: Layout) -> Reason | None:
    """A layer that reads another's keys and values needs it on its own pipeline stage.

    Source: vLLM `layers.attention.attention.validate_kv_sharing_target`.
    """
    caches = [next((c for c in layer.caches if isinstance(c, AttentionCache)), None) for layer in model.layers]
    donors = {cache.kind: index for index, cache in enumerate(caches) if cache is not None and not cache.shared}
    start = 0
    for length in layout.layers_per_stage:
        held = caches[start : start + length]
        lenders = {donors.get(cache.kind, -1) for cache in held if cache is not None and cache.shared}
        if lenders and min(lenders) < start:
            return _split_from_lender(min(lenders))
        start += length
    return None


def _split_from_lender(lender: int) -> Reason:
    return Reason(
        rule="pp_unsupported",
        field="pipeline_parallel_size",
        message=f"layers of a later pipeline stage read the keys and values of layer {lender} on an earlier one.",
        remedy="use --pipeline-parallel-size 1",
    )


def _caches(model: Model) -> Iterator[Cache]:
    for layer in {id(layer): layer for layer in model.layers}.values():
        yield from layer.caches


def _kv_heads_refusal(model: Model, layout: Layout) -> Reason | None:
    tp = layout.tensor_parallel_size
    counts = dict.fromkeys(
        (model.num_kv_heads, *(cache.kv_heads for cache in _caches(model) if isinstance(cache, AttentionCache)))
    )
    repeats = model.decoder.repeats_kv_heads
    kv_heads = next((count for count in counts if count % tp and (tp % count or not repeats)), None)
    if kv_heads is None:
        return None
    how = "neither be split over nor repeated on" if repeats else "not be split over"
    remedy = f"choose a tensor-parallel size that divides {kv_heads}"
    return Reason(
        rule="kvheads_tp",
        field="tensor_parallel_size",
        message=f"{kv_heads} KV heads can {how} {tp} ranks evenly.",
        remedy=f"{remedy} or is a multiple of it" if repeats else remedy,
    )


def _experts_refusal(model: Model, layout: Layout) -> Reason | None:
    """Some classes look for a layer with experts on each pipeline stage and give up without one.

    Source: vLLM `models.glm4_moe`, `models.qwen3_moe`, `models.step3p5` and others (0.32).
    """
    if not model.decoder.experts_on_every_stage:
        return None
    start = 0
    for stage, length in enumerate(layout.layers_per_stage):
        held = {id(layer): layer for layer in model.layers[start : start + length]}.values()
        if not any(isinstance(module, Experts) for layer in held for module in layer.modules):
            return Reason(
                rule="pp_unsupported",
                field="pipeline_parallel_size",
                message=f"pipeline stage {stage} would hold no layer with experts, which vLLM refuses here.",
                remedy="use fewer pipeline stages, so that each holds a layer with experts",
            )
        start += length
    return None


def _states_refusal(model: Model, layout: Layout) -> Reason | None:
    """Heads of a state are split, its groups too unless there is one.

    Source: vLLM `layers.mamba.mamba_mixer2.MambaMixer2`, `MambaStateShapeCalculator`.
    """
    tp = layout.tensor_parallel_size
    for cache in _caches(model):
        if isinstance(cache, StateCache) and (cache.num_heads % tp or (cache.num_groups > 1 and cache.num_groups % tp)):
            what, size = ("heads", cache.num_heads) if cache.num_heads % tp else ("groups", cache.num_groups)
            return Reason(
                rule="dim_tp",
                field="tensor_parallel_size",
                message=f"{size} {what} of the recurrent state are not divisible by tensor_parallel_size {tp}.",
                remedy=f"choose a tensor-parallel size that divides {size}",
            )
    return None


def _dimension_refusal(model: Model, layout: Layout) -> Reason | None:
    tp = layout.tensor_parallel_size
    name, size = next(((name, size) for name, size in _divided(model) if size % tp), ("", 0))
    if not name:
        return None
    return Reason(
        rule="dim_tp",
        field="tensor_parallel_size",
        message=f"{name} {size:,} is not divisible by tensor_parallel_size {tp}.",
        remedy="choose a smaller tensor-parallel size, and pipeline parallelism for the rest",
    )


def _divided(model: Model) -> Iterator[tuple[str, int]]:
    """What TP divides, by name: the widths that a config states, then those of each linear layer."""
    yield "intermediate_size", model.intermediate_size
    yield "padded vocabulary", padded_vocabulary(model.vocab_size)
    for layer in {id(layer): layer for layer in model.layers}.values():
        for module in layer.modules:
            if isinstance(module, Linear):
                yield from _divided_of(module)


def _divided_of(linear: Linear) -> Iterator[tuple[str, int]]:
    if linear.split is Split.ROW:
        yield f"the input of {linear.name}", linear.inputs
    elif linear.split is Split.COLUMN:
        yield from ((f"{shard.name} of {linear.name}", shard.outputs) for shard in linear.shards if not shard.units)
