"""Which layers' caches may share a block table: those that merge into one spec, and those of one type."""

from collections.abc import Sequence
from dataclasses import replace

from planner.core.kv_spec import KvSpec, SpecKind, distinct

MERGING_KINDS = frozenset({SpecKind.FULL, SpecKind.SINK_FULL, SpecKind.RSWA})


def can_merge(specs: Sequence[KvSpec]) -> bool:
    """Return whether layers with these specs share one block table as one spec (vLLM `KVCacheSpec.merge`).

    Full attention may differ in the window that promoted layers remember, as long as there is one at most.
    """
    different = distinct(specs)
    if len(different) == 1:
        return True
    if different[0].kind is SpecKind.SLIDING_WINDOW_MLA:
        return len({_window_mla_identity(spec) for spec in different}) == 1
    return different[0].kind in (SpecKind.FULL, SpecKind.SINK_FULL) and _full_merge(different)


def _full_merge(specs: Sequence[KvSpec]) -> bool:
    if any(spec.kind not in MERGING_KINDS for spec in specs):
        return False
    plain = {
        replace(spec, kind=SpecKind.FULL, rswa_window=None, sliding_window=None, attention_chunk_size=None)
        for spec in specs
    }
    windows = {spec.sliding_window for spec in specs} - {None}
    chunks = {spec.attention_chunk_size for spec in specs} - {None}
    return len(plain) == 1 and len(windows) + len(chunks) <= 1


def cannot_remember(specs: Sequence[KvSpec]) -> bool:
    """Return whether vLLM stops at these layers: one spec of full attention remembers one window or chunk, not two.

    Source: vLLM `FullAttentionSpec.merge_window_sizes`.
    """
    if specs[0].kind is SpecKind.RSWA or any(spec.kind not in MERGING_KINDS for spec in specs):
        return False
    windows = {spec.sliding_window for spec in specs} - {None}
    chunks = {spec.attention_chunk_size for spec in specs} - {None}
    return len(windows) > 1 or len(chunks) > 1


def _window_mla_identity(spec: KvSpec) -> tuple[object, ...]:
    """What vLLM compares of latent windows; heads and head sizes are not among it."""
    return (
        spec.kind,
        spec.dtype,
        spec.kv_quant_mode,
        spec.tokens_per_state,
        spec.model_version,
        spec.sliding_window,
        spec.extra_retained_tokens,
        spec.block_stride_alignment,
        spec.dcp_sharded,
    )


def is_one_type(specs: Sequence[KvSpec], *, states_by_page: bool = True) -> bool:
    """Return whether all layers need the same number of token slots, so that they share a block table.

    Their pages may differ, those of states only where `states_by_page` is off (before 0.29). Source: vLLM
    `UniformTypeKVCacheSpecs.is_uniform_type`.
    """
    different = distinct(specs)
    if len({spec.block_size for spec in different}) > 1 or len({spec.dcp_sharded for spec in different}) > 1:
        return False
    first = different[0]
    return all(_same_type(first, spec, states_by_page=states_by_page) for spec in different)


def _same_type(first: KvSpec, other: KvSpec, *, states_by_page: bool) -> bool:
    if first.is_full or other.is_full:
        return first.is_full and other.is_full
    if first.kind is SpecKind.SLIDING_WINDOW:
        return other.is_window and other.sliding_window == first.sliding_window
    if first.kind is not other.kind:
        return False
    match first.kind:
        case SpecKind.MAMBA:
            return _same_states(first, other, by_page=states_by_page)
        case SpecKind.SLIDING_WINDOW_MLA:
            return first.sliding_window == other.sliding_window
        case _:
            return first.attention_chunk_size == other.attention_chunk_size


def _same_states(first: KvSpec, other: KvSpec, *, by_page: bool) -> bool:
    blocks = first.num_speculative_blocks == other.num_speculative_blocks
    checkpoints = first.num_prefill_checkpoint_blocks == other.num_prefill_checkpoint_blocks
    return blocks and checkpoints and (not by_page or first.page_bytes == other.page_bytes)
