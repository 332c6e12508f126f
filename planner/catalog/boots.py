"""Published boots of vLLM as ground truth: `boots.tsv` holds one fact a line, `boot_sources.tsv` where each was found.

A fact's basis is `stated` (the source prints it), `inferred` (deduced from something else it prints, such as the GPU
from its total memory) or `derived` (arithmetic on what it prints). Figures per rank are separated by semicolons.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from itertools import groupby
from pathlib import Path

_HERE = Path(__file__).parent
PerRank = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One boot: what was asked for, what the log printed (GiB, one figure a rank), and how it ended.

    `outcome` is booted, refused, out_of_memory_at_boot, out_of_memory_under_load, hung, crashed or unclear. `assumed`
    names the fields whose value is inferred or derived. `tier` is A (model, GPU, layout, length and a figure stated), B
    (usable with an assumption) or C (context only); `flags` are words beside the command, `command_told` that all of it
    is known. `weights_gib` is "Model loading took"; `consumed_gib` adds non-torch memory to it,
    `activation_with_graphs_gib` the graph estimate: so 0.27.1 and later print them."""

    id: str
    source: str
    outcome: str
    failure: str = ""
    confidence: str = ""
    tier: str = ""
    assumed: frozenset[str] = frozenset()
    vllm: str = ""
    engine_core: str = ""
    model_runner: str = ""
    usage: str = "server"
    model: str = ""
    gpu: str = ""
    gpus: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: str = ""
    utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    kv_cache_dtype: str = ""
    quantization: str = ""
    dtype: str = ""
    block_size: int | None = None
    enforce_eager: bool | None = None
    prefix_caching: bool | None = None
    num_gpu_blocks_override: int | None = None
    kv_cache_memory_bytes: int | None = None
    cpu_offload_gb: float | None = None
    kv_offloading_gib: float | None = None
    decode_context_parallel_size: int | None = None
    pp_layer_partition: str = ""
    load_format: str = ""
    model_impl: str = ""
    lora: bool = False
    draft_model: bool = False
    sleep_mode: bool = False
    language_model_only: bool = False
    shared_gpu: bool = False
    speculative_config: str = ""
    flags: str = ""
    command: str = ""
    command_told: bool = False
    total_gib: PerRank = ()
    free_at_start_gib: PerRank = ()
    weights_gib: PerRank = ()
    consumed_gib: PerRank = ()
    activation_gib: PerRank = ()
    activation_with_graphs_gib: PerRank = ()
    non_torch_gib: PerRank = ()
    activation_and_non_torch_gib: PerRank = ()
    non_kv_gib: PerRank = ()
    graphs_gib: PerRank = ()
    graphs_estimated_gib: PerRank = ()
    free_memory_change_at_capture_gib: PerRank = ()
    available_kv_gib: PerRank = ()
    needed_kv_gib: PerRank = ()
    load_peak_gib: PerRank = ()
    kv_tokens: int | None = None
    storable_tokens: int | None = None
    estimated_max_model_len: int | None = None
    num_gpu_blocks: int | None = None
    num_cpu_blocks: int | None = None
    max_concurrency: float | None = None
    capture_sizes: int | None = None
    largest_capture: int | None = None
    cudagraph_mode: str = ""
    allreduce_fusion: bool | None = None
    attention_backend: str = ""
    graph_samples_mib: str = ""


@cache
def boots() -> tuple[Boot, ...]:
    """Return every published boot of the catalog, in the order of the file."""
    sources = dict(_rows(_HERE / "boot_sources.tsv"))
    return tuple(
        _boot(boot_id, list(facts), sources)
        for boot_id, facts in groupby(_rows(_HERE / "boots.tsv"), key=lambda row: row[0])
    )


def _rows(path: Path) -> Iterator[list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return (line.split("\t") for line in lines[1:])


def _boot(boot_id: str, facts: Iterable[list[str]], sources: Mapping[str, str]) -> Boot:
    values: dict[str, object] = {}
    assumed = set()
    where = ""
    for _, fact, text, basis, source in facts:
        values[fact] = read_fact(fact, text)
        where = sources[source]
        if basis != "stated":
            assumed.add(fact)
    return Boot(id=boot_id, source=where, assumed=frozenset(assumed), **values)  # type: ignore[arg-type]  # typed by _READERS


def read_fact(fact: str, text: str) -> object:
    """Return a fact's text as the type of its field in `Boot`; raises KeyError for a fact it does not know."""
    return _READERS[_KINDS[fact]](text)


def _per_rank(text: str) -> PerRank:
    return tuple(float(part) for part in text.split(";"))


_KINDS = {field.name: str(field.type) for field in fields(Boot)}
_READERS: Mapping[str, Callable[[str], object]] = {
    "<class 'str'>": str,
    "<class 'bool'>": lambda text: text == "true",
    "bool | None": lambda text: text == "true",
    "int | None": int,
    "float | None": float,
    str(PerRank): _per_rank,
}
