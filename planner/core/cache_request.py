"""What a command asks of the caches beside their dtype: block sizes, backends, states, context parallelism."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRequest:
    """Flags that decide what each layer caches, under vLLM's names; `kv_cache_dtype` is the resolved one.

    "auto" keeps the model's own dtype. `attention_backend` is "" where nobody names one; `skipped` are the layers that
    `kv_cache_dtype_skip_layers` (and TurboQuant's own choice) leave in the model's dtype.
    """

    kv_cache_dtype: str = "auto"
    block_size: int | None = None
    attention_backend: str = ""
    skipped: frozenset[str] = frozenset()
    mamba_block_size: int | None = None
    mamba_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    decode_context_parallel_size: int = 1
    prefill_context_parallel_size: int = 1

    @property
    def context_parallel(self) -> bool:
        """Whether the tokens of one request are spread over ranks when it decodes."""
        return self.decode_context_parallel_size > 1


NOTHING_ASKED = CacheRequest()
