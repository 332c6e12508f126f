"""Latent attention (MLA): its dimensions, its modules, and what it caches."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.core.cache_layer import LatentCache
from planner.core.config_keys import ConfigKeys
from planner.core.modules import Linear, Module, Shard, Split, column, kv_scales, norm, replicated, row


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """The dimensions of one latent layer; `query_rank` is None where queries are projected at once."""

    hidden: int
    heads: int
    query_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    value: int

    @property
    def query_width(self) -> int:
        """Elements of all queries of a token."""
        return self.heads * (self.nope + self.rope)

    @property
    def expanded_width(self) -> int:
        """Elements that the latent is expanded to: keys without positions, and values."""
        return self.heads * (self.nope + self.value)

    def cache(self, *, index_head_dim: int | None = None, shares_index: bool = False) -> LatentCache:
        """Return what the layer keeps, and the index of a sparse one beside it."""
        return LatentCache(
            num_heads=self.heads,
            kv_lora_rank=self.kv_rank,
            rope_head_dim=self.rope,
            nope_head_dim=self.nope,
            value_head_dim=self.value,
            index_head_dim=index_head_dim,
            shares_index=shares_index,
        )


def read_latent(keys: ConfigKeys) -> Latent:
    """Return the dimensions that a config states under DeepSeek's names."""
    return Latent(
        hidden=keys.required_size("hidden_size"),
        heads=keys.required_size("num_attention_heads"),
        query_rank=keys.size("q_lora_rank"),
        kv_rank=keys.required_size("kv_lora_rank"),
        nope=keys.required_size("qk_nope_head_dim"),
        rope=keys.required_size("qk_rope_head_dim"),
        value=keys.required_size("v_head_dim"),
    )


def latent_attention(
    latent: Latent, name: str = "self_attn", *, fused: bool = True, bias: bool = False
) -> Iterator[Module]:
    """Yield the modules of one layer: the way down is whole on every rank, the way up is split by heads.

    `fused` merges both ways down (vLLM `DeepSeekV2FusedQkvAProjLinear`).
    """
    yield from _downward(latent, name, fused=fused, bias=bias)
    if latent.query_rank is None:
        yield column(f"{name}.q_proj", latent.hidden, ("q_proj", latent.query_width))
    else:
        yield norm(f"{name}.q_a_layernorm", latent.query_rank)
        yield column(f"{name}.q_b_proj", latent.query_rank, ("q_b_proj", latent.query_width))
    yield norm(f"{name}.kv_a_layernorm", latent.kv_rank)
    yield expansion(latent, name)
    yield row(f"{name}.o_proj", latent.heads * latent.value, latent.hidden, bias=bias)
    yield kv_scales(f"{name}.attn")


def expansion(latent: Latent, name: str = "self_attn") -> Linear:
    """Return the projection from the latent to keys and values."""
    return column(f"{name}.kv_b_proj", latent.kv_rank, ("kv_b_proj", latent.expanded_width))


def _downward(latent: Latent, name: str, *, fused: bool, bias: bool) -> Iterator[Linear]:
    width = latent.kv_rank + latent.rope
    if latent.query_rank is None or not fused:
        if latent.query_rank is not None:
            yield replicated(f"{name}.q_a_proj", latent.hidden, latent.query_rank, bias=bias)
        yield replicated(f"{name}.kv_a_proj_with_mqa", latent.hidden, width, bias=bias)
        return
    shards = (Shard(name="q_a_proj", outputs=latent.query_rank), Shard(name="kv_a_proj_with_mqa", outputs=width))
    yield Linear(
        name=f"{name}.fused_qkv_a_proj", inputs=latent.hidden, shards=shards, split=Split.REPLICATED, bias=bias
    )
