"""Pages of one size: layers whose blocks differ in bytes are given larger blocks or padding, or another kind."""

from collections.abc import Sequence
from dataclasses import replace

from planner.core.engine import EngineFacts
from planner.core.errors import BadInput, Refusal
from planner.core.kv_merge import can_merge, cannot_remember, is_one_type
from planner.core.kv_spec import FULL_KINDS, KvSpec, SpecKind, counted


class UnequalPages(Exception):
    """The pages of some layers can be brought to one size neither by larger blocks nor by padding."""


def with_equal_pages(specs: Sequence[KvSpec], facts: EngineFacts) -> tuple[KvSpec, ...]:
    """Return the specs with pages of the largest one's size; raises UnequalPages where vLLM cannot.

    Source: vLLM `unify_kv_cache_spec_page_size` (0.12 on; before, unequal pages were not supported).
    """
    kinds = [spec for spec, _ in counted(specs)]
    largest = max(spec.page_bytes for spec in kinds)
    made = {spec: _with_page(spec, largest, facts) for spec in kinds}
    by_identity = {id(spec): made[spec] for spec in kinds}
    return tuple(by_identity[id(spec)] for spec in specs)


def _with_page(spec: KvSpec, page_bytes: int, facts: EngineFacts) -> KvSpec:
    if spec.page_bytes == page_bytes:
        return spec
    if facts.kv_pages_unified_by == "nothing":
        raise UnequalPages
    if spec.kind is SpecKind.MAMBA and facts.kv_states_padded:
        return replace(spec, page_size_padded=page_bytes)
    if page_bytes % spec.page_bytes == 0:
        larger = replace(spec, block_size=spec.block_size * (page_bytes // spec.page_bytes))
        if larger.page_bytes != page_bytes or larger.unpadded_page_bytes > page_bytes:
            raise cannot_plan(facts)
        return larger
    if _may_be_padded(spec, facts):
        return replace(spec, page_size_padded=page_bytes)
    raise UnequalPages


def _may_be_padded(spec: KvSpec, facts: EngineFacts) -> bool:
    """From 0.24 to 0.28 kernels had to read by the stride of blocks (sparse ones do not); then all but latents."""
    if spec.kind is SpecKind.MAMBA:
        return False
    if facts.kv_pages_unified_by == "stride":
        return spec.kind is not SpecKind.SLIDING_WINDOW_MLA and not (spec.kind is SpecKind.MLA and spec.cache_role)
    return facts.kv_pages_unified_by == "padding" and spec.kind is not SpecKind.MLA


def cannot_plan(facts: EngineFacts) -> Refusal:
    """Return what is said of layers for which a release has no plan."""
    return Refusal(
        "kv_page_unify",
        field="kv_cache_dtype",
        message=f"vLLM {facts.version} cannot give this model's layers pages of one size and stops.",
        fix="plan another release, or another KV-cache dtype or block size",
    )


def promoted(specs: Sequence[KvSpec], facts: EngineFacts) -> tuple[KvSpec, ...]:
    """Return the specs where every layer with a window or a chunk keeps all tokens, beside layers that do.

    Raises BadInput when that does not make them one type. Source: vLLM `unify_hybrid_kv_cache_specs`.
    """
    shared = [spec for spec in specs if spec.kind is SpecKind.MAMBA or spec.dcp_sharded]
    others = [spec for spec in specs if not (spec.kind is SpecKind.MAMBA or spec.dcp_sharded)]
    parts = (shared, others) if facts.kv_promotes_replicated_apart else (list(specs), [])
    made = {spec: new for part in parts if part for spec, new in _promotions(part, facts).items()}
    return tuple(made[spec] for spec in specs)


def _promotions(specs: Sequence[KvSpec], facts: EngineFacts) -> dict[KvSpec, KvSpec]:
    if can_merge(specs) or is_one_type(specs, states_by_page=facts.kv_states_by_page):
        return {spec: spec for spec in specs}
    full_blocks = {spec.block_size for spec in specs if spec.is_full}
    block_size = full_blocks.pop() if len(full_blocks) == 1 else None
    has_full = any(spec.is_full for spec in specs)
    made = {spec: _promoted(spec, block_size, facts) if has_full else spec for spec in dict.fromkeys(specs)}
    new = list(made.values())
    mixed = facts.kv_types_share_a_group and is_one_type(new, states_by_page=facts.kv_states_by_page)
    one_type = can_merge(new) or mixed
    if cannot_remember(new) or not one_type:
        raise _unlike()
    return made


def _unlike() -> Refusal:
    return Refusal(
        "kv_promote_fail",
        field="disable_hybrid_kv_cache_manager",
        message="without the hybrid manager vLLM cannot bring this model's layers to one type of cache.",
        fix="drop --disable-hybrid-kv-cache-manager",
    )


def _promoted(spec: KvSpec, block_size: int | None, facts: EngineFacts) -> KvSpec:
    """A window becomes full attention that remembers it; its block is the full layers' own where they have one."""
    if not (spec.is_window or spec.kind is SpecKind.CHUNKED_LOCAL):
        return spec
    latent = spec.kind is SpecKind.SLIDING_WINDOW_MLA
    if latent and not facts.kv_promotes_latent_windows:
        raise _unlike()
    takes_block = block_size is not None and (facts.kv_promotes_to_full_block or latent)
    size = block_size if takes_block and block_size is not None else spec.block_size
    kind = SpecKind.MLA if latent else SpecKind.FULL
    window = None if latent or not facts.has_hybrid_manager else spec.sliding_window
    padded = _promoted_padding(spec, size, facts)
    return replace(
        spec, kind=kind, sliding_window=window, block_size=size, page_size_padded=padded, extra_retained_tokens=0
    )


def _promoted_padding(spec: KvSpec, block_size: int, facts: EngineFacts) -> int | None:
    if spec.page_size_padded is None or not facts.kv_promotion_keeps_padding:
        return None
    if not facts.kv_promotes_to_full_block:
        return spec.page_size_padded
    return max(spec.page_size_padded, spec.unpadded_page_bytes * block_size // spec.block_size)


def full_allocation(specs: Sequence[KvSpec], facts: EngineFacts) -> tuple[KvSpec, ...] | None:
    """Return latent layers and windows beside them as full attention of one type, or None where that is no way out.

    Source: vLLM `_try_get_full_allocation_fallback_groups` (0.27 on).
    """
    kinds = {spec.kind for spec in specs}
    able = SpecKind.MLA in kinds and SpecKind.SLIDING_WINDOW in kinds
    if not facts.kv_falls_back_to_full or not able or kinds & {SpecKind.SLIDING_WINDOW_MLA, SpecKind.CHUNKED_LOCAL}:
        return None
    try:
        made = promoted(specs, facts)
    except BadInput:
        return None
    return made if is_one_type(made, states_by_page=facts.kv_states_by_page) else None


def keeps_every_token(specs: Sequence[KvSpec]) -> bool:
    """Whether all layers of a group keep every token."""
    return all(spec.kind in FULL_KINDS for spec in specs)
