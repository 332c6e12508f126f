"""The host's memory that a deployment takes on each node, and how fast its link lets it be used."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.core.cache_manager import kv_connectors
from planner.core.engine import EngineArgs, Version
from planner.core.json_flags import json_flag
from planner.core.offload import Offloaded, offloaded
from planner.core.situation import Situation
from planner.core.units import GIB, in_gib

SWAP_ENDS = Version(0, 18)
PER_RANK_UNTIL = Version(0, 14)
PROCESSOR_CACHE_GIB = 4.0
ON_ITS_OWN_SERVER = frozenset({"LMCacheMPConnector"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HostItem:
    """Something kept on a node's host: its bytes over all ranks there, and how they come about."""

    name: str
    bytes: int
    formula: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMemory:
    """What one node keeps on its host.

    `step_seconds` is the least time a step takes to move one rank's offloaded weights over its link, `refill_seconds`
    the least to bring one request of full length back from the host; None where nothing moves or the link is unknown.
    """

    nodes: int
    bytes: int
    kept: tuple[HostItem, ...]
    link_bytes_per_second: int | None
    step_seconds: float | None
    refill_seconds: float | None
    sentence: str


def host_memory(
    situations: Sequence[Situation], args: EngineArgs, *, kv_bytes_per_token_per_rank: int
) -> HostMemory | None:
    """Return what each node's host holds beside the processes themselves; None where that is nothing.

    `situations` are the stages of one replica in order. Ranks are spread evenly over `--nnodes` nodes.
    """
    first = situations[0]
    nodes = max(1, int(args.number("nnodes") or 1))
    moved = _moved(situations)
    items = tuple(item for item in _items(situations, args, moved, nodes) if item.bytes)
    if not items:
        return None
    link = first.gpu.host_bytes_per_second
    most = max((each.host_bytes for each in moved), default=0)
    cached = any(item.name == KV_ITEM for item in items)
    length = first.args.max_model_len * kv_bytes_per_token_per_rank if cached else 0
    step, refill = _seconds(most, link), _seconds(length, link)
    total = sum(item.bytes for item in items)
    return HostMemory(
        nodes=nodes,
        bytes=total,
        kept=items,
        link_bytes_per_second=link,
        step_seconds=step,
        refill_seconds=refill,
        sentence=_sentence(first, total, nodes, step, refill),
    )


WEIGHTS_ITEM = "weights"
KV_ITEM = "KV cache"


def _moved(situations: Sequence[Situation]) -> tuple[Offloaded, ...]:
    request = situations[0].args.offload
    return () if request is None else tuple(offloaded(situation, request) for situation in situations)


def _items(
    situations: Sequence[Situation], args: EngineArgs, moved: Sequence[Offloaded], nodes: int
) -> Iterator[HostItem]:
    first = situations[0]
    layout = first.layout
    per_stage = layout.tensor_parallel_size * layout.data_parallel_size
    weights = sum(each.host_bytes for each in moved) * per_stage
    yield HostItem(
        name=WEIGHTS_ITEM,
        bytes=weights // nodes,
        formula=" + ".join(f"{each.host_bytes:,} B x {per_stage} ranks" for each in moved) + _over(nodes),
        source="vLLM model_executor/offloader (pinned, and nothing else may use it)",
    )
    yield _kv(first, args, nodes)
    yield _swap(first, args, nodes)
    yield _processor_caches(first, args, nodes)


def _over(nodes: int) -> str:
    return f", over {nodes} nodes" if nodes > 1 else ""


def _kv(situation: Situation, args: EngineArgs, nodes: int) -> HostItem:
    replicas = situation.layout.data_parallel_size
    size = _kv_offloading_bytes(situation, args)
    return HostItem(
        name=KV_ITEM,
        bytes=size * replicas // nodes,
        formula=f"{in_gib(size)} a replica x {replicas}{_over(nodes)}; no block of the GPU's cache more or less",
        source="vLLM v1/kv_offload, config/vllm.py _post_init_kv_transfer_config",
    )


def _kv_offloading_bytes(situation: Situation, args: EngineArgs) -> int:
    """`--kv-offloading-size` is for all ranks of a replica; a connector may be given its bytes by hand."""
    connectors = kv_connectors(args, situation.facts)
    if not connectors or ON_ITS_OWN_SERVER.issuperset(connectors):
        return 0
    size = args.number("kv_offloading_size")
    if size is not None:
        return int(size * GIB)
    extra = json_flag(args, "kv_transfer_config").get("kv_connector_extra_config")
    stated = extra.get("cpu_bytes_to_use") if isinstance(extra, dict) else None
    return int(stated) if isinstance(stated, int | float) else 0


def _swap(situation: Situation, args: EngineArgs, nodes: int) -> HostItem:
    """Until 0.17 a command could name it; the engine since 0.8 checks it against the host and fills none of it."""
    named = args.swap_space or 0 if situation.facts.version < SWAP_ENDS else 0
    gpus = situation.layout.gpus // nodes
    return HostItem(
        name="swap space",
        bytes=int(named * GIB) * gpus,
        formula=f"{named:g} GiB x {gpus} GPUs, checked against the host's memory and never filled",
        source="vLLM config/cache.py, until 0.17.1",
    )


def _processor_caches(situation: Situation, args: EngineArgs, nodes: int) -> HostItem:
    """Prepared images are kept by each API process and by each engine, up to that size."""
    stated = args.number("mm_processor_cache_gb")
    each = PROCESSOR_CACHE_GIB if stated is None else stated
    served = situation.model.traits.multimodal and situation.facts.version >= Version(0, 10, 1)
    processes = int(args.number("api_server_count") or 1) + situation.layout.data_parallel_size
    size = int(each * GIB) * processes if served and not args.asks("language_model_only") else 0
    return HostItem(
        name="prepared images",
        bytes=size // nodes,
        formula=f"up to {each:g} GiB x {processes} processes{_over(nodes)}",
        source="vLLM config/multimodal.py mm_processor_cache_gb",
    )


def _seconds(size_bytes: int, link: int | None) -> float | None:
    return size_bytes / link if size_bytes and link else None


def _sentence(situation: Situation, total: int, nodes: int, step: float | None, refill: float | None) -> str:
    said = [f"{in_gib(total)} of host memory{' on each node' if nodes > 1 else ''} beside the processes."]
    if step is not None:
        said.append(
            f"Each step moves offloaded weights for at least {1000 * step:,.0f} ms over {_link(situation)}: "
            f"no sequence gets more than {1 / step:,.1f} tokens a second."
        )
    if refill is not None:
        said.append(f"A request of full length comes back in {1000 * refill:,.0f} ms at best.")
    return " ".join(said)


def _link(situation: Situation) -> str:
    gpu = situation.gpu
    return "NVLink-C2C" if gpu.is_coherent_with_host else f"PCIe {gpu.pcie}"
