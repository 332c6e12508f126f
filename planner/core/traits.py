"""What kind of model it is, as vLLM asks before it fills in defaults and refuses: experts, latents, states, towers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from planner.core.cache_layer import AttentionCache, Cache, CompressedCache, LatentCache, StateCache
from planner.core.decoder import Decoder, Layer
from planner.core.modules import Experts
from planner.core.sameness import Same


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The answers of one model; `experts` is the most that any layer routes over, 0 for a dense model.

    Source: vLLM `ModelConfig`: `is_moe`, `use_mla`, `is_hybrid`, `is_attention_free`, `is_encoder_decoder`,
    `is_multimodal_model`, `attention_chunk_size`.
    """

    experts: int
    latent: bool
    sparse: bool
    has_states: bool
    attends: bool
    chunked: bool
    windowed: bool
    encoder_decoder: bool
    multimodal: bool

    @property
    def hybrid(self) -> bool:
        """Whether some layers keep states and others keys and values."""
        return self.has_states and self.attends

    @property
    def attention_free(self) -> bool:
        """Whether no layer keeps keys and values."""
        return self.has_states and not self.attends


def traits_of(decoder: Decoder) -> Traits:
    """Return the traits of a model."""
    layers = distinct_layers(decoder)
    caches = [cache for layer in layers for cache in layer.caches]
    attention = [cache for cache in caches if isinstance(cache, AttentionCache)]
    return Traits(
        experts=most_experts(layers),
        latent=any(isinstance(cache, LatentCache | CompressedCache) for cache in caches),
        sparse=any(_is_sparse(cache) for cache in caches),
        has_states=any(isinstance(cache, StateCache) for cache in caches),
        attends=any(not isinstance(cache, StateCache) for cache in caches),
        chunked=any(cache.kind == "chunked_local" for cache in attention),
        windowed=any(cache.kind == "sliding_window" for cache in attention),
        encoder_decoder=decoder.is_encoder_decoder,
        multimodal=bool(decoder.towers),
    )


def distinct_layers(decoder: Decoder) -> tuple[Layer, ...]:
    """Return each kind of layer once; equal layers are one object."""
    return _distinct_layers(Same(decoder))


@lru_cache(maxsize=512)
def _distinct_layers(decoder: Same[Decoder]) -> tuple[Layer, ...]:
    return tuple({id(layer): layer for layer in decoder.held.layers}.values())


def most_experts(layers: tuple[Layer, ...]) -> int:
    """Return the most experts that one of the layers routes over."""
    return max((experts.count for experts in experts_of(layers)), default=0)


def experts_of(layers: tuple[Layer, ...]) -> Iterator[Experts]:
    """Return the routed experts of these layers."""
    return (module for layer in layers for module in layer.modules if isinstance(module, Experts))


def _is_sparse(cache: Cache) -> bool:
    return isinstance(cache, LatentCache | CompressedCache) and cache.index_head_dim is not None
