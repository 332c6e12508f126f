"""What one attention layer asks of a backend, and the device and release that answer."""

from dataclasses import dataclass

from planner.core.engine import Version

HALVES = frozenset({"float16", "bfloat16"})
PLAIN_CACHE = frozenset({"auto", "float16", "bfloat16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionNeed:
    """A layer as vLLM's selector sees it (`AttentionSelectorConfig`); heads are those of one rank.

    `block_size` is the one asked for on the command line, `kv_cache_dtype` that of this layer. `head_dim` of a latent
    layer is that of its cache. `sees_images_whole`: image tokens attend in both directions (vLLM's mm_prefix).
    """

    head_dim: int
    value_head_dim: int
    num_heads: int
    kv_heads: int
    dtype: str
    kv_cache_dtype: str
    block_size: int | None = None
    latent: bool = False
    sparse: bool = False
    nope_head_dim: int = 0
    rope_head_dim: int = 0
    sinks: bool = False
    sees_images_whole: bool = False
    soft_capped: bool = False
    cross: bool = False
    context_parallel: bool = False

    @property
    def plain_cache(self) -> bool:
        """Whether the cache keeps the model's own 16-bit numbers."""
        return self.kv_cache_dtype in PLAIN_CACHE


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionDevice:
    """The compute capability and the release a backend is chosen for; FlashAttention's version follows from them.

    `is_cpu`: vLLM's CPU platform, which has backends of its own and no capability.
    """

    capability: tuple[int, int]
    version: Version
    is_cpu: bool = False

    def is_family(self, *majors: int) -> bool:
        """Whether the capability's major number is one of these."""
        return self.capability[0] in majors

    @property
    def has_flash_attention_4(self) -> bool:
        """Whether FlashAttention 4 is there and runs (vLLM `is_fa_version_supported`)."""
        return self.version >= Version(0, 17) and self.is_family(9, 10, 11)

    def flash_attention(self, need: AttentionNeed | None = None) -> int:
        """Return the version of FlashAttention that serves a layer (vLLM `fa_utils.get_flash_attn_version`)."""
        if self.is_family(9):
            return 4 if need is not None and self._outgrows_flash_attention_3(need) else 3
        if not self.is_family(10) or not self.has_flash_attention_4:
            return 2
        return 4 if need is None or self._fits_tensor_memory(need) else 2

    def _outgrows_flash_attention_3(self, need: AttentionNeed) -> bool:
        if need.sinks and need.head_dim != need.value_head_dim and self.version >= Version(0, 20):
            return True
        return need.head_dim > 256 and self.version >= Version(0, 21)

    def _fits_tensor_memory(self, need: AttentionNeed) -> bool:
        if need.head_dim == 256:
            return self.has_pages_of_128(need)
        if self.version < Version(0, 27):
            return need.head_dim <= 128 or (need.head_dim == 192 and self.version >= Version(0, 18))
        return need.head_dim <= 128 or (need.head_dim, need.value_head_dim) == (192, 128)

    def has_pages_of_128(self, need: AttentionNeed) -> bool:
        """Whether FlashAttention 4's own kernel for heads of 256 serves the layer: a page of it holds 128 tokens.

        Source: vLLM 0.29 on, `fa_utils.uses_fa4_hd256_kernel` and `_fa4_hd256_fallback_reason`.
        """
        if self.version < Version(0, 29) or not self.is_family(10):
            return False
        blocked = need.sinks or need.soft_capped or need.sees_images_whole or need.context_parallel
        odd_block = need.block_size is not None and need.block_size % 128 != 0
        wide = (need.head_dim, need.value_head_dim) == (256, 256)
        return wide and need.plain_cache and not blocked and not odd_block
