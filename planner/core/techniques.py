"""Every technique for the KV cache, with what it does, or would do, to one plan and its own mix of requests."""

from dataclasses import replace

from planner.core.cache_dtypes import CacheDtypeSupport, cache_dtype_support
from planner.core.capacity import RequestClass
from planner.core.errors import PlanningError
from planner.core.estimate import Estimate, KvCache, Question, estimate
from planner.core.eviction import attention_sinks, heavy_hitters
from planner.core.paging import paging, prefix_sharing
from planner.core.small_cache import small_cache
from planner.core.technique import Technique
from planner.core.units import DTYPE_BYTES

SHOWN_CACHES = ("fp8", "int4_per_token_head", "nvfp4")


def techniques(question: Question, answer: Estimate) -> tuple[Technique, ...]:
    """Return every technique with its effect on this plan; none for a plan that is refused before its cache is sized.

    The mix is the question's own; without one, requests of full length stand in for it. Raises BadInput for a request
    that is longer than max_model_len.
    """
    cache = answer.kv_cache
    if cache is None:
        return ()
    mix = question.requests or (_full_length(cache.max_model_len),)
    kinds = cache_dtype_support(question.facts.version, question.gpu, question.model.head_dim)
    fixed = answer.engine.num_gpu_blocks_override is not None
    return (
        paging(mix, cache),
        *(
            small_cache(
                kind,
                cache,
                mix,
                replanned=_replanned(question, kind),
                plain_bytes_per_head=2 * question.model.head_dim * DTYPE_BYTES[answer.engine.dtype],
                fixed_blocks=fixed,
            )
            for kind in kinds
            if kind.name in SHOWN_CACHES
        ),
        prefix_sharing(mix, cache, on=answer.engine.enable_prefix_caching),
        attention_sinks(mix, cache),
        heavy_hitters(mix, cache),
    )


def _replanned(question: Question, kind: CacheDtypeSupport) -> KvCache | None:
    """The same plan with this cache type, None where it cannot be planned."""
    try:
        return estimate(replace(question, args=replace(question.args, kv_cache_dtype=kind.name))).kv_cache
    except PlanningError:
        return None


def _full_length(max_model_len: int) -> RequestClass:
    return RequestClass(name="full length", prompt_tokens=max_model_len - 1, output_tokens=1)
