"""What one layer keeps on one rank, in vLLM's terms: the size of a block, and how many blocks a request may hold."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from planner.core.errors import BadInput
from planner.core.units import cdiv, round_up


class SpecKind(StrEnum):
    """The kinds of cache that vLLM's planner tells apart (its `KVCacheSpec` classes)."""

    FULL = "full_attention"
    SINK_FULL = "sink_full_attention"
    MLA = "mla_attention"
    SLIDING_WINDOW = "sliding_window"
    SLIDING_WINDOW_MLA = "sliding_window_mla"
    CHUNKED_LOCAL = "chunked_local_attention"
    MAMBA = "mamba"
    CROSS = "cross_attention"
    CIRCULAR = "circular_buffer"
    RSWA = "rswa"


FULL_KINDS = frozenset({SpecKind.FULL, SpecKind.SINK_FULL, SpecKind.MLA, SpecKind.RSWA})
WINDOW_KINDS = frozenset({SpecKind.SLIDING_WINDOW, SpecKind.SLIDING_WINDOW_MLA})


@dataclass(frozen=True, slots=True, kw_only=True)
class KvSpec:
    """One layer's cache on one rank; the fields are those of vLLM's specs.

    `element_bytes` is the size of `dtype`. `state_content_bytes` replaces (head_size + head_size_v) x element_bytes
    where the format packs more than values; `num_head_slots` the heads. `tokens_per_state` is above 1 where one state
    covers several tokens. `alignment` pads the page, `page_size_padded` sets it. `state_bytes` is a Mamba-like state.
    Source: vLLM `v1.kv_cache_interface` (0.32).
    """

    kind: SpecKind
    block_size: int
    num_kv_heads: int = 1
    head_size: int = 0
    head_size_v: int = 0
    dtype: str = "bfloat16"
    element_bytes: int = 2
    kv_quant_mode: str = ""
    num_head_slots: int | None = None
    state_content_bytes: int | None = None
    tokens_per_state: int | Fraction = 1
    alignment: int | None = None
    page_size_padded: int | None = None
    block_stride_alignment: int | None = None
    dcp_sharded: bool = False
    sliding_window: int | None = None
    extra_retained_tokens: int = 0
    rswa_window: int | None = None
    attention_chunk_size: int | None = None
    cache_role: str = ""
    model_version: str = ""
    state_bytes: int = 0
    mamba_type: str = ""
    mamba_cache_mode: str = "none"
    num_speculative_blocks: int = 0
    num_prefill_checkpoint_blocks: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it keeps every token (vLLM `FullAttentionSpec` and what derives from it)."""
        return self.kind in FULL_KINDS

    @property
    def is_window(self) -> bool:
        """Whether it keeps a window of the latest tokens (vLLM `SlidingWindowSpec` and what derives from it)."""
        return self.kind in WINDOW_KINDS

    @property
    def unpadded_page_bytes(self) -> int:
        """Bytes of one block before any padding."""
        if self.kind is SpecKind.MAMBA:
            return self.state_bytes
        heads = self.num_kv_heads if self.num_head_slots is None else self.num_head_slots
        states = (
            self.block_size // self.tokens_per_state
            if isinstance(self.tokens_per_state, int)
            else int(self.block_size / self.tokens_per_state)
        )
        content = self.state_content_bytes
        if content is None:
            content = (self.head_size + self.head_size_v) * self.element_bytes
        return heads * states * content

    @property
    def page_bytes(self) -> int:
        """Bytes of one block, padding included (vLLM `page_size_bytes`)."""
        if self.page_size_padded is not None:
            return self.page_size_padded
        return round_up(self.unpadded_page_bytes, self.alignment) if self.alignment else self.unpadded_page_bytes

    @property
    def block_stride_bytes(self) -> int:
        """Bytes from one block of a layer to the next where the kernel wants them aligned."""
        return (
            round_up(self.page_bytes, self.block_stride_alignment) if self.block_stride_alignment else self.page_bytes
        )

    def blocks_per_request(self, max_model_len: int, bounds: "RequestBounds") -> int:
        """Return the most blocks that one request of this length holds (vLLM `max_memory_usage_bytes` in pages)."""
        match self.kind:
            case SpecKind.MAMBA:
                return self._states_per_request(max_model_len, bounds)
            case SpecKind.CIRCULAR:
                return 1
            case SpecKind.CROSS:
                return cdiv(bounds.encoder_tokens, self.block_size)
            case SpecKind.SLIDING_WINDOW | SpecKind.SLIDING_WINDOW_MLA:
                self._require_whole_window(bounds)
                held = (self.sliding_window or 0) - 1 + self.extra_retained_tokens + bounds.in_flight_tokens
                return cdiv(min(held, max_model_len), self.block_size) + 1
            case SpecKind.CHUNKED_LOCAL:
                held = (self.attention_chunk_size or 0) + bounds.in_flight_tokens
                return cdiv(min(held, max_model_len), self.block_size)
            case _:
                shards = bounds.context_parallel if self.dcp_sharded else 1
                return cdiv(cdiv(max_model_len, shards), self.block_size)

    def _require_whole_window(self, bounds: "RequestBounds") -> None:
        if self.dcp_sharded and bounds.context_parallel > 1:
            raise BadInput(
                field="decode_context_parallel_size",
                message="this model has layers with a sliding window, which vLLM does not share out over ranks.",
                fix="leave out --decode-context-parallel-size",
            )

    def _states_per_request(self, max_model_len: int, bounds: "RequestBounds") -> int:
        """The running state and those of drafted tokens; with "align" one more, with "all" one at each block's end."""
        drafted = self.num_speculative_blocks if bounds.drafted_states_count else 0
        if self.mamba_cache_mode == "align":
            return 2 + drafted + self.num_prefill_checkpoint_blocks
        if self.mamba_cache_mode == "all":
            return cdiv(max_model_len, self.block_size) + drafted
        return 1 + drafted


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBounds:
    """What bounds the blocks of a request beside its length.

    `in_flight_tokens` may be scheduled and not yet settled, `encoder_tokens` are those of the longest encoder input,
    `context_parallel` ranks share the tokens of a request; `drafted_states_count` says whether this release counts the
    states of drafted tokens.
    """

    in_flight_tokens: int
    encoder_tokens: int = 0
    context_parallel: int = 1
    drafted_states_count: bool = True


def counted(specs: Iterable[KvSpec]) -> tuple[tuple[KvSpec, int], ...]:
    """Return the different specs with how often each comes, in order of appearance.

    They are told apart by identity: the layers of a model share theirs, and hashing each would take longer.
    """
    held = list(specs)
    counts = Counter(map(id, held))
    return tuple((spec, counts[identity]) for identity, spec in {id(spec): spec for spec in held}.items())


def distinct(specs: Iterable[KvSpec]) -> list[KvSpec]:
    """Return the unequal specs among some, in order of appearance."""
    return list(dict.fromkeys(spec for spec, _ in counted(specs)))
