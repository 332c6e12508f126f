"""Scratch memory that layers share and that stays: of routed experts, and of the indexer of sparse attention.

vLLM keeps one buffer, as large as the largest request of any layer (`v1.worker.workspace.WorkspaceManager`, 0.13 on).
"""

from functools import lru_cache

from planner.core.cache_layer import CompressedCache, LatentCache
from planner.core.decoder import Decoder
from planner.core.engine import Version
from planner.core.expert_storage import held_experts
from planner.core.modules import Experts
from planner.core.sameness import Same
from planner.core.situation import Situation
from planner.core.traits import distinct_layers, experts_of
from planner.core.units import round_up

INDEX_SHARED_SINCE = Version(0, 13)
EXPERTS_SHARED_SINCE = Version(0, 14)  # before, each layer of experts takes its buffers and gives them back
LATENT_PROFILED_SINCE = Version(0, 11)
INDEX_ROWS_PER_TOKEN = 40  # vLLM v1/attention/backends/mla/indexer.py get_max_prefill_buffer_size; 2 before 0.13
INDEX_ROWS_BEFORE = 2
INDEX_LOGITS_BYTES = 512 << 20  # VLLM_SPARSE_INDEXER_MAX_LOGITS_MB, profiled since 0.19
INDEX_LOGITS_SINCE = Version(0, 19)
MOST_LATENT_ROWS = 64 * 1024
TILE = 128  # DeepGEMM pads the tokens of each expert to it
FUSED_METHODS = frozenset({"nvfp4", "mxfp4", "mxfp8"})
FUSED_UNQUANTISED_SINCE = Version(0, 26)


def shared_bytes(situation: Situation) -> int:
    """Return the shared buffer of one rank: the largest that experts or indexer ask for."""
    version = situation.facts.version
    experts = expert_bytes(situation) if version >= EXPERTS_SHARED_SINCE else 0
    index = index_bytes(situation) if version >= INDEX_SHARED_SINCE else 0
    return max(experts, index)


def passing_bytes(situation: Situation) -> int:
    """Return what experts and indexer take for the time of one layer where the release shares nothing yet."""
    version = situation.facts.version
    experts = 0 if version >= EXPERTS_SHARED_SINCE else expert_bytes(situation)
    index = 0 if version >= INDEX_SHARED_SINCE else index_bytes(situation)
    return max(experts, index, latent_bytes(situation), _index_logits_bytes(situation))


def expert_bytes(situation: Situation) -> int:
    """Return both buffers of a layer of experts: top_k rows a token, as wide as the widest product before and after.

    2 x T x top_k x (max(I, H) + max(2 I, H)) in 16 bits; kernels that fuse both products only want their output. With
    data parallelism every rank may see the batches of all. Source: vLLM `fused_moe.experts.*.workspace_shapes`.
    """
    return max((_expert_bytes(situation, experts) for experts in _distinct_experts(situation)), default=0)


def _distinct_experts(situation: Situation) -> tuple[Experts, ...]:
    return _experts(Same(situation.model.decoder))


@lru_cache(maxsize=512)
def _experts(decoder: Same[Decoder]) -> tuple[Experts, ...]:
    return tuple(dict.fromkeys(experts_of(distinct_layers(decoder.held))))


def _expert_bytes(situation: Situation, experts: Experts) -> int:
    held = held_experts(experts, situation.place)
    tokens = situation.args.max_num_batched_tokens * situation.layout.data_parallel_size
    if is_fused(situation, experts):
        return situation.element_bytes * tokens * held.hidden
    rows = tokens * experts.top_k
    if experts.scheme is not None and experts.scheme.method == "fp8" and experts.scheme.granularity == "block":
        rows = _tiled(situation, rows, held.count)
    return situation.element_bytes * rows * (max(held.width, held.hidden) + max(held.upward, held.hidden))


def _tiled(situation: Situation, rows: int, experts: int) -> int:
    capability = situation.gpu.compute_capability or (0, 0)
    return round_up(rows + experts * (TILE - 1), TILE) if capability[0] in (9, 10) else rows


def is_fused(situation: Situation, experts: Experts) -> bool:
    """Whether one kernel does both products: TensorRT-LLM's and FlashInfer's on Blackwell."""
    capability = situation.gpu.compute_capability or (0, 0)
    if experts.scheme is None:
        return capability[0] == 10 and situation.facts.version >= FUSED_UNQUANTISED_SINCE
    return capability[0] >= 10 and experts.scheme.method in FUSED_METHODS


def index_bytes(situation: Situation) -> int:
    """Return the indexer's gathered keys: 40 rows of fp8 values and a scale for every token of max_model_len."""
    version = situation.facts.version
    rows = INDEX_ROWS_PER_TOKEN if version >= INDEX_SHARED_SINCE else INDEX_ROWS_BEFORE
    return max(
        (rows * situation.args.max_model_len // ratio * (dim + 4) for dim, ratio in _indexes(situation)), default=0
    )


def _indexes(situation: Situation) -> tuple[tuple[int, int], ...]:
    """Head size of each indexer, and how many tokens one of its rows stands for."""
    caches = (cache for layer in distinct_layers(situation.model.decoder) for cache in layer.caches)
    return tuple(
        (cache.index_head_dim, cache.ratio if isinstance(cache, CompressedCache) else 1)
        for cache in caches
        if isinstance(cache, LatentCache | CompressedCache) and cache.index_head_dim is not None
    )


def _index_logits_bytes(situation: Situation) -> int:
    return INDEX_LOGITS_BYTES if _indexes(situation) and situation.facts.version >= INDEX_LOGITS_SINCE else 0


def unprofiled_logits_bytes(situation: Situation) -> int:
    """Return the indexer's float32 scores of a full batch against the longest context: not profiled before 0.19."""
    if not _indexes(situation) or situation.facts.version >= INDEX_LOGITS_SINCE:
        return 0
    return situation.args.max_num_batched_tokens * situation.args.max_model_len * 4


def latent_bytes(situation: Situation) -> int:
    """Return MLA's up-projected context, which profiling stands in for: rows x heads x (nope + value) elements.

    Rows: 8 x max_model_len or 4 pages a sequence, 65,536 at most, one page a sequence at least. Source: vLLM
    `MLACommonMetadataBuilder.determine_chunked_prefill_workspace_size`, profiled from 0.11; sparse attention has none.
    """
    if situation.facts.version < LATENT_PROFILED_SINCE:
        return 0
    widths = [_latent_width(situation, cache) for cache in _latents(situation)]
    return situation.element_bytes * latent_rows(situation) * max(widths, default=0)


def latent_rows(situation: Situation) -> int:
    """Return the tokens whose context is projected up at once."""
    args = situation.args
    pages = args.max_num_seqs * args.block_size
    return max(min(max(8 * args.max_model_len, 4 * pages), MOST_LATENT_ROWS), pages)


def _latents(situation: Situation) -> tuple[LatentCache, ...]:
    caches = (cache for layer in distinct_layers(situation.model.decoder) for cache in layer.caches)
    return tuple(c for c in caches if isinstance(c, LatentCache) and c.index_head_dim is None and not c.shares_index)


def _latent_width(situation: Situation, cache: LatentCache) -> int:
    heads = cache.num_heads // situation.layout.tensor_parallel_size
    return heads * (cache.nope_head_dim + cache.value_head_dim)
