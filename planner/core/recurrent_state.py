"""The state that a recurrent layer keeps for a request: its shapes on a rank, their dtypes and their bytes."""

from dataclasses import dataclass
from math import prod

from planner.core.cache_layer import StateCache
from planner.core.cache_request import CacheRequest
from planner.core.engine import EngineFacts
from planner.core.errors import BadInput
from planner.core.units import ELEMENT_BYTES

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankState:
    """One layer's state on one rank, as vLLM's `MambaSpec` has it: tensors with a shape and a dtype each."""

    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]

    @property
    def content_bytes(self) -> int:
        """Bytes of all its tensors."""
        return sum(prod(shape) * ELEMENT_BYTES[dtype] for shape, dtype in zip(self.shapes, self.dtypes, strict=True))


def rank_state(
    cache: StateCache,
    *,
    tensor_parallel_size: int,
    drafted_tokens: int,
    dtype: str,
    asked: CacheRequest,
    facts: EngineFacts,
    nemotron: bool = False,
) -> RankState:
    """Return one layer's state on one rank; raises BadInput where TP does not divide it.

    Source: vLLM `layers.mamba.mamba_utils.MambaStateShapeCalculator` and `MambaStateDtypeCalculator`.
    """
    shapes = _SHAPES[cache.kind](cache, tensor_parallel_size, drafted_tokens)
    conv, state = _dtypes(cache, dtype, asked, facts, nemotron=nemotron)
    dtypes = {"linear": (conv,), "short_conv": (conv,)}.get(cache.kind, (conv, state))
    return RankState(shapes=shapes, dtypes=dtypes)


def _divided(size: int, ranks: int) -> int:
    if size % ranks:
        message = f"{ranks} ranks do not divide a state of {size:,}."
        raise BadInput(field="tensor_parallel_size", message=message, fix=f"use a divisor of {size:,}")
    return size // ranks


def _mamba1(cache: StateCache, ranks: int, drafted: int) -> tuple[Shape, ...]:
    width = _divided(cache.inner_size, ranks)
    return (cache.conv_kernel - 1, width), (width, cache.state_size)


def _mamba2(cache: StateCache, ranks: int, drafted: int) -> tuple[Shape, ...]:
    """Groups that the ranks do not divide are copied until each rank has one."""
    groups = cache.num_groups if cache.num_groups % ranks == 0 else ranks
    width = cache.inner_size + 2 * groups * cache.state_size
    conv = (cache.conv_kernel - 1 + drafted, _divided(width, ranks))
    return conv, (_divided(cache.num_heads, ranks), cache.head_dim, cache.state_size)


def _gdn(cache: StateCache, ranks: int, drafted: int) -> tuple[Shape, ...]:
    width = 2 * cache.key_heads * cache.key_head_dim + cache.num_heads * cache.head_dim
    conv = (cache.conv_kernel - 1 + drafted, _divided(width, ranks))
    return conv, (_divided(cache.num_heads, ranks), cache.head_dim, cache.key_head_dim)


def _kda(cache: StateCache, ranks: int, drafted: int) -> tuple[Shape, ...]:
    width = 2 * cache.key_heads * cache.key_head_dim + cache.num_heads * cache.head_dim
    conv = (cache.conv_kernel - 1 + drafted, _divided(width, ranks))
    return conv, (_divided(cache.num_heads, ranks), cache.head_dim, cache.head_dim)


def _linear(cache: StateCache, ranks: int, drafted: int) -> tuple[Shape, ...]:
    return ((cache.num_heads // ranks, cache.head_dim, cache.head_dim),)


def _short_conv(cache: StateCache, ranks: int, drafted: int) -> tuple[Shape, ...]:
    return ((cache.conv_kernel - 1 + drafted, _divided(cache.inner_size, ranks)),)


_SHAPES = {
    "mamba1": _mamba1,
    "mamba2": _mamba2,
    "gdn": _gdn,
    "kda": _kda,
    "linear": _linear,
    "short_conv": _short_conv,
}


def _dtypes(
    cache: StateCache, dtype: str, asked: CacheRequest, facts: EngineFacts, *, nemotron: bool
) -> tuple[str, str]:
    """Flags come before what the config asks, and that before the convolution's dtype, which is the model's."""
    conv = dtype if asked.mamba_cache_dtype == "auto" else asked.mamba_cache_dtype
    state = asked.mamba_ssm_cache_dtype
    if state == "auto" and cache.kind in facts.states_follow_config:
        state = cache.state_dtype or (facts.nemotron_state_dtype if nemotron else "auto")
    if state == "auto":
        state = "float32" if cache.kind == "kda" else conv
    return conv, state
