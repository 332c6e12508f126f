"""Layers that keep every token, for tests of the planner: short to write, and planned as vLLM does."""

from dataclasses import dataclass

from planner.core.kv_cache import KvCachePlan
from planner.core.kv_cache import kv_cache_plan as plan_of
from planner.core.kv_groups import kv_groups
from planner.core.kv_spec import KvSpec, RequestBounds, SpecKind

BOUNDS = RequestBounds(in_flight_tokens=8192)
DTYPES = {1: "float8_e4m3fn", 2: "bfloat16", 4: "float32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StageKv:
    """A pipeline stage of equal full-attention layers, and the bytes it has for them."""

    layers: int
    kv_heads: int
    head_dim: int
    element_bytes: int
    available_bytes: int

    def specs(self, block_size: int) -> list[KvSpec]:
        spec = KvSpec(
            kind=SpecKind.FULL,
            block_size=block_size,
            num_kv_heads=self.kv_heads,
            head_size=self.head_dim,
            head_size_v=self.head_dim,
            dtype=DTYPES[self.element_bytes],
            element_bytes=self.element_bytes,
        )
        return [spec] * self.layers


def kv_cache_plan(stages, *, block_size, max_model_len, facts, **settings) -> KvCachePlan:
    """Plan stages of full attention."""
    groups = kv_groups([stage.specs(block_size) for stage in stages], facts=facts)
    available = [stage.available_bytes for stage in stages]
    return plan_of(groups, available, max_model_len=max_model_len, bounds=BOUNDS, facts=facts, **settings)
