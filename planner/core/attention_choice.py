"""The backend of each layer of a model on a device, named by the command or chosen by vLLM."""

from dataclasses import dataclass

from planner.core.attention_backend import Backend, KernelBlock, exactly, first_that_serves, multiples_of, refused
from planner.core.attention_need import AttentionDevice, AttentionNeed
from planner.core.cache_layer import AttentionCache, LatentCache
from planner.core.cache_request import CacheRequest
from planner.core.engine import EngineFacts, Version
from planner.core.errors import BadInput, Unknown
from planner.core.hardware import Gpu
from planner.core.head_backends import BACKENDS as HEAD_BACKENDS
from planner.core.head_backends import head_preferences
from planner.core.latent_backends import BACKENDS as LATENT_BACKENDS
from planner.core.latent_backends import latent_preferences
from planner.core.model import Model

NAMED = {backend.name: backend for backend in (*HEAD_BACKENDS, *LATENT_BACKENDS)}
OLD_NAMES = {
    "TRITON_ATTN_VLLM_V1": "TRITON_ATTN",
    "FLASHINFER_VLLM_V1": "FLASHINFER",
    "FLASH_ATTN_VLLM_V1": "FLASH_ATTN",
    "FLASHMLA_VLLM_V1": "FLASHMLA",
    "CUTLASS_MLA_VLLM_V1": "CUTLASS_MLA",
    "TRITON_MLA_VLLM_V1": "TRITON_MLA",
}
CHECKED_SINCE = Version(0, 11, 1)
INDEXER_BLOCK = 64
SPARSE_HEADS_BLOCK = 128


def _fixed(name: str, blocks: tuple[KernelBlock, ...]) -> Backend:
    return Backend(name=name, objection=lambda need, device: "", kernel_blocks=lambda need, device: blocks)


UNCHECKED = _fixed("FLASH_ATTN", multiples_of(16))
CPU_ATTN = _fixed("CPU_ATTN", multiples_of(32))
CPU_MLA = _fixed("CPU_MLA", exactly(16))
INDEXER = _fixed("DEEPSEEK_V32_INDEXER", exactly(INDEXER_BLOCK))
SPARSE_HEADS = _fixed("MINIMAX_M3_SPARSE", exactly(SPARSE_HEADS_BLOCK))
FLASH_ATTN_DIFFKV = _fixed("FLASH_ATTN_DIFFKV", multiples_of(16))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerBackend:
    """A layer's need and the backend that serves it on a device."""

    need: AttentionNeed
    device: AttentionDevice
    backend: Backend

    @property
    def kernel_blocks(self) -> tuple[KernelBlock, ...]:
        """The blocks that its kernels take."""
        return self.backend.kernel_blocks(self.need, self.device)

    @property
    def smallest_block(self) -> int:
        """The fewest tokens a block of it may hold."""
        return min(block.tokens for block in self.kernel_blocks)

    def takes_block(self, tokens: int) -> bool:
        """Whether a block of this many tokens serves it, whole or split."""
        return self.backend.takes_block(tokens, self.need, self.device)

    def preferred_block(self, default: int) -> int:
        """Return the block size taken when nobody asks for one (vLLM `get_preferred_block_size`)."""
        return default if self.takes_block(default) else self.smallest_block

    def largest_block_within(self, page_bytes: int, bytes_per_token: int) -> int:
        """Return the most tokens a block of it may hold within a page; the least when none fits.

        Source: vLLM `layers.attention.attention._largest_kernel_block_within` (0.30 on).
        """
        most = page_bytes // bytes_per_token
        sizes = [block.most_within(most) for block in self.kernel_blocks]
        return max((size for size in sizes if size <= most), default=min(sizes))


def attention_device(gpu: Gpu, facts: EngineFacts) -> AttentionDevice:
    """Return what backends are chosen for; raises Unknown for a GPU whose compute capability is not known."""
    if gpu.is_cpu:
        return AttentionDevice(capability=(0, 0), version=facts.version, is_cpu=True)
    if gpu.compute_capability is None:
        message = f"the compute capability of {gpu.name} is not known, so neither is its attention backend."
        raise Unknown(field="gpu", message=message, fix="plan for a GPU of the list")
    return AttentionDevice(capability=gpu.compute_capability, version=facts.version)


def layer_need(
    cache: AttentionCache | LatentCache,
    *,
    model: Model,
    tensor_parallel_size: int,
    dtype: str,
    kv_cache_dtype: str,
    asked: CacheRequest,
) -> AttentionNeed:
    """Return what one layer asks of a backend, on one rank; `kv_cache_dtype` is this layer's."""
    heads = cache.num_heads // tensor_parallel_size
    if isinstance(cache, LatentCache):
        return AttentionNeed(
            head_dim=cache.kv_lora_rank + cache.rope_head_dim,
            value_head_dim=cache.value_head_dim,
            num_heads=heads,
            kv_heads=1,
            dtype=dtype,
            kv_cache_dtype=kv_cache_dtype,
            block_size=asked.block_size,
            latent=True,
            sparse=cache.index_head_dim is not None or cache.shares_index,
            nope_head_dim=cache.nope_head_dim,
            rope_head_dim=cache.rope_head_dim,
            context_parallel=asked.context_parallel,
        )
    return AttentionNeed(
        head_dim=cache.head_dim,
        value_head_dim=cache.value_head_dim or cache.head_dim,
        num_heads=heads,
        kv_heads=max(1, cache.kv_heads // tensor_parallel_size),
        dtype=dtype,
        kv_cache_dtype=kv_cache_dtype,
        block_size=asked.block_size,
        sinks=cache.has_sinks,
        sees_images_whole=model.decoder.whole_item_tokens is not None and cache.kind != "chunked_local",
        soft_capped=model.model_type == "gemma2",
        cross=cache.kind == "cross",
        context_parallel=asked.context_parallel,
    )


def chosen_backend(need: AttentionNeed, device: AttentionDevice, asked: CacheRequest) -> Backend:
    """Return the backend that serves a layer; raises BadInput where vLLM finds none, or not the one named.

    Source: vLLM `platforms.cuda.CudaPlatformBase.get_attn_backend_cls`, `platforms.cpu` (0.11.1 to 0.33). Older
    releases chose by other rules, and every block size suited whatever they chose.
    """
    if device.is_cpu:
        return CPU_MLA if need.latent else CPU_ATTN
    if device.version < CHECKED_SINCE:
        return UNCHECKED
    if need.value_head_dim != need.head_dim and not need.latent:
        return FLASH_ATTN_DIFFKV
    if asked.attention_backend:
        return _named(asked.attention_backend, need, device)
    preferences = latent_preferences(need, device) if need.latent else head_preferences(need, device)
    found = first_that_serves(preferences, need, device)
    if found is None:
        raise _no_backend(preferences, need, device)
    return found


def _named(name: str, need: AttentionNeed, device: AttentionDevice) -> Backend:
    backend = NAMED.get(OLD_NAMES.get(name, name))
    if backend is None:
        message = f"the block sizes of {name} are not known here."
        raise Unknown(field="attention_backend", message=message, fix=f"plan with one of {', '.join(sorted(NAMED))}")
    reason = refused(backend, need, device)
    if reason:
        message = f"{name} does not serve this model here: {reason}."
        raise BadInput(field="attention_backend", message=message, fix="leave the choice to vLLM")
    return backend


def _no_backend(preferences: tuple[Backend, ...], need: AttentionNeed, device: AttentionDevice) -> BadInput:
    """Speaks of the backends that are made for this kind of attention; the field is what the user can change."""
    fitting = [backend for backend in preferences if "it is for" not in backend.objection(need, device)]
    reasons = "; ".join(f"{backend.name}: {refused(backend, need, device)}" for backend in fitting[:3])
    message = f"no attention backend serves this model here ({reasons})."
    if need.block_size is not None and any(not backend.objection(need, device) for backend in fitting):
        return BadInput(field="block_size", message=message, fix="leave the block size out")
    fix = "use another GPU" if need.plain_cache else "use --kv-cache-dtype auto, or another GPU"
    return BadInput(field="gpu" if need.plain_cache else "kv_cache_dtype", message=message, fix=fix)
