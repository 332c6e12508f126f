"""What one layer keeps for the tokens of a request, as the architecture has it: before TP, dtypes and block sizes."""

from dataclasses import dataclass, field

from planner.core.engine import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCache:
    """Keys and values of one attention layer.

    `kind` is "full", "sliding_window", "chunked_local", "cross" or "encoder_only" (keeps nothing); `span` is the window
    or the chunk in tokens (one less before the release `span_grew`). `shared` layers read another layer's cache and
    keep none of their own. `index_head_dim` adds the keys of an indexer (the sparse attention of MiniMax M3).
    """

    num_heads: int
    kv_heads: int
    head_dim: int
    value_head_dim: int | None = None
    kind: str = "full"
    span: int | None = None
    span_grew: Version | None = None
    has_sinks: bool = False
    shared: bool = False
    index_head_dim: int | None = None

    def span_in(self, version: Version) -> int | None:
        """Return the window or the chunk of that release."""
        grows_later = self.span is not None and self.span_grew is not None and version < self.span_grew
        return self.span - 1 if self.span is not None and grows_later else self.span


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentCache:
    """The latent of one MLA layer, whole on every TP rank; `index_head_dim` adds the indexer of sparse attention.

    `shares_index` layers use the indexer of an earlier layer (they keep no index of their own).
    """

    num_heads: int
    kv_lora_rank: int
    rope_head_dim: int
    nope_head_dim: int
    value_head_dim: int
    index_head_dim: int | None = None
    shares_index: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedCache:
    """The caches of one DeepSeek V4 layer: a compressed latent (a state for `ratio` tokens), a window, an indexer."""

    num_heads: int
    head_dim: int
    rope_head_dim: int
    ratio: int
    window: int
    index_head_dim: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCache:
    """The recurrent state of one layer, of one size whatever the length.

    `kind` is "mamba1", "mamba2", "gdn", "kda", "linear" or "short_conv"; which sizes count depends on it (mamba1:
    inner_size, state_size, conv_kernel; mamba2: also num_heads, head_dim, num_groups; gdn and kda: num_heads and
    head_dim of values, key_heads and key_head_dim; linear: num_heads, head_dim; short_conv: inner_size, conv_kernel).
    `state_dtype` is what the config asks of the temporal state ("" where it says nothing), `chunk_size` the tokens of a
    chunk that it states (0: none).
    """

    kind: str
    inner_size: int = 0
    state_size: int = 0
    conv_kernel: int = 0
    num_heads: int = 0
    head_dim: int = 0
    num_groups: int = 0
    key_heads: int = 0
    key_head_dim: int = 0
    state_dtype: str = ""
    conv_dtype: str = field(default="")
    chunk_size: int = 0


Cache = AttentionCache | LatentCache | CompressedCache | StateCache
