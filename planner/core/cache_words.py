"""How the blocks of a cache come about, in words: the formula with its numbers, and why two figures differ."""

from collections.abc import Sequence

from planner.core.kv_cache import KvCachePlan
from planner.core.kv_spec import KvSpec, RequestBounds, SpecKind, counted
from planner.core.kv_table import Group


def block_formula(available_bytes: int, groups: Sequence[Group], plan: KvCachePlan) -> str:
    """Return available bytes over the bytes of one block of the widest group, with the numbers filled in."""
    widest = max(groups, key=lambda group: group.stage_bytes, default=None)
    if widest is None or not plan.bytes_per_block:
        return "no layer keeps a cache"
    pages = " + ".join(f"{count} layers x {page_words(spec)}" for spec, count in counted(widest.specs))
    return f"floor({available_bytes:,} B / ({pages}))"


def why_they_differ(groups: Sequence[Group], plan: KvCachePlan, bounds: RequestBounds) -> str:
    """Return why the cache's size in tokens is not its bytes over the bytes of a token; "" where it simply is."""
    if len(groups) == 1 and groups[0].spec.is_full:
        return ""
    kept = [(group, group.blocks_per_request(plan.max_model_len, bounds)) for group in groups]
    growing = sum(blocks for group, blocks in kept if group.spec.is_full)
    fixed = plan.blocks_per_request - growing
    texts = [f"a request of {plan.max_model_len:,} tokens takes {plan.blocks_per_request:,} blocks"]
    if fixed:
        texts[0] += f", {fixed:,} of them for windows or states, which do not grow with it"
    padding, layers = sum(group.padding for group in groups), sum(len(group.layers) for group in groups)
    if padding:
        texts.append(f"{padding} of the {layers + padding} places in {len(groups)} groups are padding")
    return (
        f"{'; '.join(texts)}. The cache's tokens are counted in such requests: another max_model_len, another figure."
    )


def page_words(spec: KvSpec) -> str:
    """Return the bytes of one block of one layer as a formula."""
    if spec.page_bytes != spec.unpadded_page_bytes:
        return f"{spec.page_bytes:,} B (padded from {spec.unpadded_page_bytes:,})"
    if spec.kind is SpecKind.MAMBA or spec.tokens_per_state != 1 or spec.state_content_bytes is not None:
        return f"{spec.page_bytes:,} B"
    heads = spec.num_kv_heads if spec.num_head_slots is None else spec.num_head_slots
    values = f"2 x {spec.head_size}" if spec.head_size == spec.head_size_v else f"{spec.head_size + spec.head_size_v}"
    shared = f"{heads} KV heads x " if spec.kind is not SpecKind.MLA else ""
    return f"{spec.block_size} tokens x {shared}{values} x {spec.element_bytes} B"
