"""The caches of a DeepSeek V4 layer: a window, and a compressed latent with the states that it is compressed in."""

from collections.abc import Iterator
from dataclasses import replace

from planner.core.cache_content import COMPRESSED_FP8_BYTES, is_plain
from planner.core.cache_layer import CompressedCache
from planner.core.errors import BadInput, Unknown
from planner.core.kv_spec import KvSpec, SpecKind

WINDOW_BLOCK = 64
ALIGNMENT = 576
STATE_BLOCKS = {4: 4, 128: 8}
INDEX_GROUP = 128
INDEX_SCALE_BYTES = 4
PACKED_NAMES = frozenset({"auto", "fp8", "fp8_e4m3", "fp8_ds_mla"})


def compressed_specs(cache: CompressedCache, *, kv_cache_dtype: str, block_size: int) -> Iterator[tuple[str, KvSpec]]:
    """Yield the caches of one layer in vLLM's order; layers with a ratio of 1 (the MTP layer too) keep a window only.

    Raises BadInput for a dtype that vLLM refuses, Unknown for one not planned. Source: vLLM `models.deepseek_v4` (0.20
    to 0.33): `DeepseekV4SWACache`, `DeepseekV4IndexerCache`, `CompressorStateCache`, `DeepseekV4Attention`.
    """
    _require_packed(kv_cache_dtype)
    latent = KvSpec(
        kind=SpecKind.MLA,
        block_size=block_size,
        head_size=cache.head_dim,
        dtype="uint8",
        element_bytes=1,
        kv_quant_mode="FP8_PER_TENSOR",
        state_content_bytes=COMPRESSED_FP8_BYTES,
        tokens_per_state=cache.ratio,
        alignment=ALIGNMENT,
        dcp_sharded=True,
        model_version="deepseek_v4",
    )
    window = replace(latent, kind=SpecKind.SLIDING_WINDOW_MLA, block_size=WINDOW_BLOCK, tokens_per_state=1)
    if cache.ratio > 1 and cache.index_head_dim is not None:
        yield "indexer", _indexer(cache.index_head_dim, latent)
        yield "indexer.state", _state(cache.index_head_dim, cache.ratio)
    yield "swa_cache", replace(window, sliding_window=cache.window)
    if cache.ratio <= 1:
        return
    yield "attn", latent
    yield "state", _state(cache.head_dim, cache.ratio)


def _require_packed(kv_cache_dtype: str) -> None:
    if kv_cache_dtype in PACKED_NAMES:
        return
    if is_plain(kv_cache_dtype):
        message = f"DeepSeek V4's kernels read an fp8 cache only, not {kv_cache_dtype}."
        raise BadInput(field="kv_cache_dtype", message=message, fix="use --kv-cache-dtype fp8, or leave it out")
    message = f"{kv_cache_dtype} with DeepSeek V4's compressed caches is not planned yet."
    raise Unknown(field="kv_cache_dtype", message=message, fix="plan with fp8")


def _indexer(head_dim: int, latent: KvSpec) -> KvSpec:
    """Keys in 8 bits with a scale for each 128, one for each compressed state."""
    width = head_dim + head_dim // INDEX_GROUP * INDEX_SCALE_BYTES
    return replace(latent, head_size=width, kv_quant_mode="", state_content_bytes=None, model_version="")


def _state(head_dim: int, ratio: int) -> KvSpec:
    """What is being compressed, in float32: keys and scores, twice where the compressor's windows overlap (ratio 4)."""
    overlap = 2 if ratio == 4 else 1
    return KvSpec(
        kind=SpecKind.SLIDING_WINDOW_MLA,
        block_size=STATE_BLOCKS[ratio],
        head_size=2 * overlap * head_dim,
        dtype="float32",
        element_bytes=4,
        alignment=ALIGNMENT,
        dcp_sharded=True,
        sliding_window=overlap * ratio,
    )
