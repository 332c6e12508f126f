"""Runtime slack: what lies outside the budget against what is allocated after vLLM has sized its cache.

An engine that booted cleanly can still run out of memory under load: the pool is fixed, and everything allocated later
(graphs before 0.20, workspaces, communication buffers, fragmentation) must find room outside `gpu_memory_utilization`.
"""

from dataclasses import dataclass

from planner.core.budget import StageBudget
from planner.core.calibration import Situation
from planner.core.engine import Version
from planner.core.layout import Layout
from planner.core.units import GIB, MIB, cdiv, in_gib, round_up
from planner.core.workspaces import unprofiled_logits_bytes

CONTEXT_BYTES = int(0.51 * GIB)
CONTEXT_AND_NCCL_BYTES = int(1.53 * GIB)
FLASHINFER_WORKSPACE_BYTES = 394 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackItem:
    """Something that is allocated outside the budget: central and high bytes."""

    name: str
    bytes: int
    high_bytes: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """A risk verdict for running out of memory under load: `ample`, `tight` (the high end is too much) or `at_risk`."""

    verdict: str
    outside_bytes: int
    needed_bytes: int
    high_needed_bytes: int
    items: tuple[SlackItem, ...]
    sentence: str
    lowers_it: tuple[str, ...]


def held_before_start_bytes(layout: Layout) -> int:
    """Return what the CUDA context, and NCCL with several ranks, hold before vLLM takes its first snapshot.

    0.51 GiB with one rank, 1.43 to 1.55 GiB with more: the initial snapshots of 45 H100 boots of vLLM 0.19.
    """
    return CONTEXT_BYTES if layout.world_size == 1 else CONTEXT_AND_NCCL_BYTES


def runtime_slack(situation: Situation, budget: StageBudget) -> Slack | None:
    """Return the slack verdict of one stage, or None on the CPU platform, where host RAM is shared anyway."""
    if situation.gpu.is_cpu:
        return None
    items = _items(situation, budget)
    outside = budget.total_bytes - budget.requested_bytes
    needed, high = sum(item.bytes for item in items), sum(item.high_bytes for item in items)
    verdict = "ample" if outside >= high else "tight" if outside >= needed else "at_risk"
    return Slack(
        verdict=verdict,
        outside_bytes=outside,
        needed_bytes=needed,
        high_needed_bytes=high,
        items=items,
        sentence=_sentence(verdict, outside, needed, high),
        lowers_it=_remedies(situation, verdict, high - outside, budget.total_bytes),
    )


def _items(situation: Situation, budget: StageBudget) -> tuple[SlackItem, ...]:
    several = situation.layout.world_size > 1
    context = held_before_start_bytes(situation.layout)
    tables = _block_table_bytes(situation)
    items = [
        _item(
            "CUDA context" + (" and NCCL" if several else ""),
            context,
            context,
            "initial snapshots, 45 H100 boots of 0.19",
        ),
        _item("block tables and slot mappings", tables, tables, "vLLM v1/worker/block_table.py"),
        _item(
            "allocator fragmentation",
            GIB // 4,
            GIB,
            "1.3 to 1.7 GiB requests failing in public reports of 0.7; no measurement of ours",
        ),
    ]
    if several:
        items.append(
            _item("communication buffers under load", GIB // 4, 3 * GIB // 4, "an allowance of ours, not measured")
        )
    if _uses_flashinfer(situation):
        size = FLASHINFER_WORKSPACE_BYTES
        items.append(_item("FlashInfer workspace", size, size, "vLLM VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE"))
    scores = unprofiled_logits_bytes(situation)
    if scores:
        source = "vLLM v1/attention/backends/mla/indexer.py; bounded and profiled from 0.19 on"
        items.append(_item("scores of the sparse attention's indexer", scores, 2 * scores, source))
    items.append(_graph_item(situation, budget))
    return tuple(items)


def _item(name: str, size_bytes: int, high_bytes: int, source: str) -> SlackItem:
    return SlackItem(name=name, bytes=size_bytes, high_bytes=high_bytes, source=source)


def _graph_item(situation: Situation, budget: StageBudget) -> SlackItem:
    graphs = next(term for term in budget.terms if term.name == "cuda_graphs")
    if graphs.inside_budget:
        beyond = graphs.high_bytes - graphs.bytes
        return _item("CUDA graphs beyond their estimate", 0, beyond, "high end of the graph term")
    since = "before 0.18" if situation.facts.version < Version(0, 18) else "in 0.18 and 0.19"
    return _item(f"CUDA graphs (outside the budget {since})", graphs.bytes, graphs.high_bytes, graphs.source)


def _block_table_bytes(situation: Situation) -> int:
    """int32 tables on host and device, padded rows, and an int64 slot map (vLLM `BlockTable`)."""
    args = situation.args
    row = round_up(cdiv(args.max_model_len, args.block_size), 128)
    return 2 * args.max_num_seqs * row * 4 + args.max_num_batched_tokens * 8


def _uses_flashinfer(situation: Situation) -> bool:
    capability = situation.gpu.compute_capability
    fp8_on_ampere = situation.args.kv_cache_dtype.startswith("fp8") and situation.gpu.below(9)
    return fp8_on_ampere or (capability is not None and capability[0] == 10)


def _sentence(verdict: str, outside: int, needed: int, high: int) -> str:
    need = f"{in_gib(needed)} (up to {in_gib(high)})"
    if verdict == "ample":
        return f"{in_gib(outside)} stay outside the budget, against {need} allocated after the cache is sized: ample."
    if verdict == "tight":
        return f"{in_gib(outside)} outside the budget cover the usual {in_gib(needed)}, not the worst {in_gib(high)}."
    return f"At risk of running out of memory under load: {in_gib(outside)} outside the budget, {need} allocated later."


def _remedies(situation: Situation, verdict: str, missing_bytes: int, total_bytes: int) -> tuple[str, ...]:
    room = total_bytes // 20 if verdict == "ample" else missing_bytes
    remedies = [_smaller_pool(situation, room, total_bytes)]
    if situation.args.cudagraph_mode != "NONE" and situation.facts.cuda_graphs != "inside":
        remedies.append("fewer graphs: --max-num-seqs lower, or --enforce-eager (slower decoding)")
    remedies.append("a load test of the real burst before production")
    return tuple(remedies)


def _smaller_pool(situation: Situation, room_bytes: int, total_bytes: int) -> str:
    args = situation.args
    if args.kv_cache_memory_bytes is not None:
        return f"--kv-cache-memory-bytes {max(0, args.kv_cache_memory_bytes - room_bytes)}"
    lower = max(0.05, args.gpu_memory_utilization - room_bytes / total_bytes)
    return f"--gpu-memory-utilization {int(lower * 100 + 1e-9) / 100:g}"
