"""vLLM's KV-cache planning for full attention: bytes -> blocks -> tokens and concurrency, version by version."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.core.engine import EngineFacts
from planner.core.units import cdiv


@dataclass(frozen=True, slots=True, kw_only=True)
class StageKv:
    """What every rank of one pipeline stage caches, and the bytes it has for it.

    `kv_heads` is per rank: KV heads are split over tensor-parallel ranks, and replicated when there are fewer of them.
    """

    layers: int
    kv_heads: int
    head_dim: int
    element_bytes: int
    available_bytes: int

    @property
    def bytes_per_token(self) -> int:
        """Key and value bytes of one token on one rank of this stage (vLLM `AttentionSpec.page_size_bytes` / block)."""
        return self.layers * self.kv_heads * 2 * self.head_dim * self.element_bytes


def kv_heads_per_rank(num_kv_heads: int, tensor_parallel_size: int) -> int:
    """Return the KV heads one rank holds (vLLM `ModelConfig.get_num_kv_heads`)."""
    return max(1, num_kv_heads // tensor_parallel_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCachePlan:
    """What vLLM makes of the available bytes.

    `refusal` is "" or the rule that stops the boot: `no_kv_memory`, `kv_one_request` (then `estimated_max_model_len` is
    the longest length that would fit, 0 if none) or `autofit_fail`. Blocks count the null block, as vLLM's log does.
    """

    block_size: int
    max_model_len: int
    num_gpu_blocks: int
    tokens: int
    max_concurrency: float
    binding_stage: int
    needed_bytes: int
    checked_bytes: int
    estimated_max_model_len: int
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _StageFit:
    stage: int
    bytes_per_block: int
    num_blocks: int
    checked_bytes: int

    @property
    def blocks_for_one_request(self) -> int:
        return max(0, self.checked_bytes) // self.bytes_per_block


def kv_cache_plan(
    stages: Sequence[StageKv],
    *,
    block_size: int,
    max_model_len: int,
    facts: EngineFacts,
    auto_max_model_len: bool = False,
    num_gpu_blocks_override: int | None = None,
) -> KvCachePlan:
    """Return blocks, tokens and concurrency of one replica, or the refusal.

    Every rank counts its own blocks and all take the minimum.
    Source: vLLM `v1.core.kv_cache_utils`: `get_kv_cache_configs` and
    `check_enough_kv_cache_memory` (0.8.5 to 0.32), `v1.core.kv_cache_planning` (0.33).
    """
    fits = [_stage_fit(i, s, block_size, facts, num_gpu_blocks_override) for i, s in enumerate(stages) if s.layers]
    checks = [_whole_model_fit(fits)] if facts.checks_whole_model else fits
    longest = min(fit.blocks_for_one_request for fit in checks) * block_size
    length = min(max_model_len, longest) if auto_max_model_len and longest else max_model_len
    num_blocks = min(fit.num_blocks for fit in fits)
    blocks_per_request = cdiv(length, block_size)
    concurrency = _concurrency(num_blocks, block_size, length, facts)
    checked = _checked_first(checks, blocks_per_request)
    return KvCachePlan(
        block_size=block_size,
        max_model_len=length,
        num_gpu_blocks=num_blocks,
        tokens=_tokens(num_blocks, block_size, length, concurrency, facts),
        max_concurrency=concurrency,
        binding_stage=min(fits, key=lambda fit: fit.num_blocks).stage,
        needed_bytes=blocks_per_request * checked.bytes_per_block,
        checked_bytes=checked.checked_bytes,
        estimated_max_model_len=min(checked.blocks_for_one_request * block_size, max_model_len),
        refusal=_refusal(checked, blocks_per_request, auto=auto_max_model_len),
    )


def _checked_first(checks: Sequence[_StageFit], blocks_per_request: int) -> _StageFit:
    """The stages are checked in order, and the first that cannot hold one request is the one that vLLM speaks of."""
    tightest = min(checks, key=lambda fit: (fit.blocks_for_one_request, fit.checked_bytes))
    short = (fit for fit in checks if fit.blocks_for_one_request < blocks_per_request or fit.checked_bytes <= 0)
    return next(short, tightest)


def _whole_model_fit(fits: Sequence[_StageFit]) -> _StageFit:
    """From 0.14 to 0.16 a request of the whole model, all stages' layers, had to fit the least of their memories."""
    least = min(fits, key=lambda fit: fit.checked_bytes)
    return replace(least, bytes_per_block=sum(fit.bytes_per_block for fit in fits))


def _stage_fit(index: int, stage: StageKv, block_size: int, facts: EngineFacts, override: int | None) -> _StageFit:
    """An override is the number of blocks; the check of one request sees it as memory only since 0.20.1."""
    bytes_per_block = stage.bytes_per_token * block_size
    seen = override if facts.override_counts_as_memory else None
    available_bytes = stage.available_bytes if seen is None else seen * bytes_per_block
    withheld_bytes = bytes_per_block if facts.withholds_null_block else 0
    return _StageFit(
        stage=index,
        bytes_per_block=bytes_per_block,
        num_blocks=max(0, available_bytes) // bytes_per_block if override is None else override,
        checked_bytes=available_bytes - withheld_bytes,
    )


def _concurrency(num_blocks: int, block_size: int, max_model_len: int, facts: EngineFacts) -> float:
    if facts.concurrency_is_tokens_over_length:
        return num_blocks * block_size / max_model_len
    return num_blocks / cdiv(max_model_len, block_size)


def _tokens(num_blocks: int, block_size: int, max_model_len: int, concurrency: float, facts: EngineFacts) -> int:
    """The logged "KV cache size": since 0.20 it is the concurrency in tokens, not the blocks in tokens."""
    return int(concurrency * max_model_len) if facts.kv_size_is_relative_to_length else num_blocks * block_size


def _refusal(checked: _StageFit, blocks_per_request: int, *, auto: bool) -> str:
    """vLLM fits the length before it checks the memory, so `auto` never hears that there is none."""
    if auto:
        return "" if checked.blocks_for_one_request else "autofit_fail"
    if checked.checked_bytes <= 0:
        return "no_kv_memory"
    return "kv_one_request" if blocks_per_request > checked.blocks_for_one_request else ""
