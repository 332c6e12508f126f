"""Attention with grouped key-value heads: its dimensions, its modules, and what it caches."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.core.cache_layer import AttentionCache
from planner.core.config_keys import ConfigKeys
from planner.core.errors import BadInput
from planner.core.modules import Module, column, kv_scales, norm, qkv, row


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The heads of one attention layer over hidden states of width `hidden`, `size` elements each.

    `value_size` is that of values where it differs.
    """

    hidden: int
    queries: int
    kv: int
    size: int
    value_size: int | None = None

    @property
    def width(self) -> int:
        """Elements of all queries of a token."""
        return self.queries * self.size

    @property
    def output_width(self) -> int:
        """Elements of what attention gives for a token."""
        return self.queries * (self.value_size or self.size)

    def cache(
        self, *, window: int | None = None, kind: str = "", shared: bool = False, has_sinks: bool = False
    ) -> AttentionCache:
        """Return what a layer of these heads keeps: everything, or a window of tokens (a chunk if `kind` says so)."""
        return AttentionCache(
            num_heads=self.queries,
            kv_heads=self.kv,
            head_dim=self.size,
            value_head_dim=self.value_size,
            kind=kind or ("full" if window is None else "sliding_window"),
            span=window,
            shared=shared,
            has_sinks=has_sinks,
        )


def read_heads(keys: ConfigKeys) -> Heads:
    """Return the heads that a config states under transformers' names; BadInput where they contradict each other."""
    hidden, queries = keys.required_size("hidden_size"), keys.required_size("num_attention_heads")
    kv = keys.size("num_key_value_heads") or queries
    if queries % kv:
        message = f"{queries} attention heads cannot share {kv} key-value heads evenly."
        raise BadInput(field=keys.spelling("num_key_value_heads"), message=message, fix=f"give a divisor of {queries}")
    return Heads(hidden=hidden, queries=queries, kv=kv, size=keys.size("head_dim") or hidden // queries)


def attention(
    heads: Heads,
    name: str = "self_attn",
    *,
    qkv_bias: bool = False,
    o_bias: bool = False,
    normalises: bool = False,
    gated: bool = False,
) -> Iterator[Module]:
    """Yield the modules of one layer: projections, KV scales, and a norm for queries and for keys if it `normalises`.

    A `gated` one projects a gate beside each query.
    """
    yield qkv(
        f"{name}.qkv_proj",
        hidden=heads.hidden,
        heads=heads.queries * (2 if gated else 1),
        kv_heads=heads.kv,
        head_dim=heads.size,
        value_dim=heads.value_size,
        bias=qkv_bias,
    )
    yield row(f"{name}.o_proj", heads.output_width, heads.hidden, bias=o_bias)
    if normalises:
        yield norm(f"{name}.q_norm", heads.size)
        yield norm(f"{name}.k_norm", heads.size)
    yield kv_scales(f"{name}.attn")


def borrowing_attention(heads: Heads, name: str = "self_attn", *, bias: bool = False) -> Iterator[Module]:
    """Yield the modules of a layer that reads the keys and values of an earlier one: queries, their norm, output."""
    yield column(f"{name}.q_proj", heads.hidden, ("q_proj", heads.width), bias=bias)
    yield row(f"{name}.o_proj", heads.width, heads.hidden, bias=bias)
    yield norm(f"{name}.q_norm", heads.size)
    yield kv_scales(f"{name}.attn")
