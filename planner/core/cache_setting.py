"""A model on one rank of a device and release, and what the command asks of its caches."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.core.attention_choice import (
    INDEXER,
    SPARSE_HEADS,
    LayerBackend,
    attention_device,
    chosen_backend,
    layer_need,
)
from planner.core.attention_need import AttentionDevice
from planner.core.cache_layer import AttentionCache, Cache, CompressedCache, LatentCache, StateCache
from planner.core.cache_request import CacheRequest
from planner.core.engine import EngineFacts
from planner.core.hardware import Gpu
from planner.core.model import Model
from planner.core.recurrent_state import RankState, rank_state
from planner.core.traits import distinct_layers


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSetting:
    """Everything that block sizes and cache specs depend on; `dtype` is the one the model computes in."""

    model: Model
    gpu: Gpu
    facts: EngineFacts
    asked: CacheRequest
    dtype: str
    tensor_parallel_size: int
    mamba_cache_mode: str = "none"
    max_model_len: int = 0
    drafted_tokens: int = 0

    @property
    def device(self) -> AttentionDevice:
        """What attention backends are chosen for."""
        return attention_device(self.gpu, self.facts)

    def layer_dtype(self, index: int, cache: Cache) -> str:
        """Return the kv_cache_dtype of one layer: "auto" for layers that keep the model's own.

        Source: vLLM `Attention.__init__` and `MLAAttention.__init__` (0.19 on).
        """
        if not self.asked.skipped:
            return self.asked.kv_cache_dtype
        window = isinstance(cache, AttentionCache) and cache.kind == "sliding_window"
        kept = str(index) in self.asked.skipped or (window and "sliding_window" in self.asked.skipped)
        return "auto" if kept else self.asked.kv_cache_dtype

    def served(self, cache: AttentionCache | LatentCache, kv_cache_dtype: str) -> LayerBackend:
        """Return what a layer whose cache has this dtype asks for, and the backend that serves it."""
        need = layer_need(
            cache,
            model=self.model,
            tensor_parallel_size=self.tensor_parallel_size,
            dtype=self.dtype,
            kv_cache_dtype=kv_cache_dtype,
            asked=self.asked,
        )
        device = self.device
        return LayerBackend(need=need, device=device, backend=chosen_backend(need, device, self.asked))

    def attention_backends(self) -> tuple[LayerBackend, ...]:
        """Return the backends of the attention layers, each once and in the order in which they are first met.

        An indexer comes before the attention that uses it, as vLLM registers them (`_find_non_ssm_backends`).
        """
        met: dict[str, LayerBackend] = {}
        seen: set[tuple[int, str]] = set()
        for index, layer in enumerate(self.model.layers):
            for cache in layer.caches:
                key = (id(cache), self.layer_dtype(index, cache))
                if key not in seen:
                    seen.add(key)
                    for served in self._backends_of(cache, key[1]):
                        met.setdefault(served.backend.name, self._as_the_model(served))
        return tuple(met.values())

    def _as_the_model(self, served: LayerBackend) -> LayerBackend:
        """Return a layer's backend as vLLM asks it for the model: its widest heads, and the dtype of the flag."""
        if served.need.latent:
            return served
        heads = [cache.head_dim for cache in self.distinct_caches() if isinstance(cache, AttentionCache)]
        need = replace(served.need, head_dim=max(heads), kv_cache_dtype=self.asked.kv_cache_dtype)
        return replace(served, need=need)

    def _backends_of(self, cache: Cache, kv_cache_dtype: str) -> Iterator[LayerBackend]:
        match cache:
            case LatentCache():
                served = self.served(cache, kv_cache_dtype)
                if cache.index_head_dim is not None and not cache.shares_index:
                    yield replace(served, backend=INDEXER)
                yield served
            case AttentionCache() if cache.kind != "encoder_only":
                served = self.served(cache, kv_cache_dtype)
                yield served if cache.index_head_dim is None else replace(served, backend=SPARSE_HEADS)

    @property
    def compressed(self) -> bool:
        """Whether the model keeps DeepSeek V4's compressed caches."""
        return any(isinstance(cache, CompressedCache) for cache in self.distinct_caches())

    def distinct_caches(self) -> Iterator[Cache]:
        """Yield what each kind of layer caches."""
        return (cache for layer in distinct_layers(self.model.decoder) for cache in layer.caches)

    def state(self, cache: StateCache) -> RankState:
        """Return the state of one recurrent layer on a rank."""
        return rank_state(
            cache,
            tensor_parallel_size=self.tensor_parallel_size,
            drafted_tokens=self.drafted_tokens,
            dtype=self.dtype,
            asked=self.asked,
            facts=self.facts,
            nemotron=self.model.architecture.startswith("NemotronH"),
        )
