"""The capacity of one plan: its curve, its mix, and the points where KV becomes the larger share."""

from collections.abc import Sequence

from planner.core.budget import StageBudget
from planner.core.cache_plan import CacheDesign
from planner.core.capacity import Capacity, Pool, RequestClass, curve, mix_capacity, p95_tokens, requests_at_once
from planner.core.kv_cache import KvCachePlan
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.units import cdiv


def capacity_of(
    model: Model,
    requests: Sequence[RequestClass],
    layout: Layout,
    stages: Sequence[StageBudget],
    plan: KvCachePlan,
    pool: Pool,
    design: CacheDesign,
) -> Capacity:
    """Return what the planned cache holds; a suggested max_num_seqs is how many p95 requests the KV blocks hold."""
    p95 = p95_tokens(requests) if requests else plan.max_model_len
    weight_bytes = layout.tensor_parallel_size * sum(stage.bytes_of("weights") for stage in stages)
    per_token = design.replica_bytes_per_token()
    passing_tokens = cdiv(weight_bytes, per_token) if per_token else None
    return Capacity(
        curve=curve(pool, plan.max_model_len),
        requests_at_max_model_len=requests_at_once(pool, plan.max_model_len),
        suggested_max_num_seqs=max(1, pool.usable(pool.num_gpu_blocks) // max(1, pool.blocks_of(p95))),
        p95_request_tokens=p95,
        tokens_where_kv_passes_weights=passing_tokens,
        sessions_where_kv_passes_weights=None if passing_tokens is None else cdiv(passing_tokens, plan.max_model_len),
        bytes_per_full_request=design.replica_bytes_per_request(plan.max_model_len),
        query_heads_per_kv_head=model.num_attention_heads // max(1, model.num_kv_heads),
        mix=mix_capacity(requests, pool) if requests else None,
    )
