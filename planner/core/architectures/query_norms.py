"""Norms over the queries and keys of all heads together."""

from collections.abc import Iterator

from planner.core.grouped_attention import Heads
from planner.core.modules import Tensor, norm


def split_norms(heads: Heads, name: str = "self_attn") -> Iterator[Tensor]:
    """Yield norms of which a rank holds the share of its heads."""
    yield Tensor(name=f"{name}.q_norm", elements=heads.width, sharded=True)
    yield Tensor(name=f"{name}.k_norm", elements=heads.kv * heads.size, units=heads.kv)


def whole_norms(heads: Heads, name: str = "self_attn") -> Iterator[Tensor]:
    """Yield norms that every rank holds whole."""
    yield norm(f"{name}.q_norm", heads.width)
    yield norm(f"{name}.k_norm", heads.kv * heads.size)
