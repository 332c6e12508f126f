"""Gated DeltaNet: the linear attention of Qwen3-Next, Qwen3.5 and OLMo hybrid, whose state does not grow."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.core.cache_layer import StateCache
from planner.core.config_keys import ConfigKeys
from planner.core.modules import Linear, Module, Shard, Split, Tensor, column, norm, row

FLOAT32 = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaNet:
    """Heads of keys and of values over hidden states of width `hidden`; a convolution of `kernel` taps goes before."""

    hidden: int
    key_heads: int
    key_size: int
    value_heads: int
    value_size: int
    kernel: int

    @property
    def keys_width(self) -> int:
        """Elements of all keys of a token."""
        return self.key_heads * self.key_size

    @property
    def values_width(self) -> int:
        """Elements of all values of a token."""
        return self.value_heads * self.value_size

    def cache(self, *, state_dtype: str = "") -> StateCache:
        """Return the state of one layer."""
        return StateCache(
            kind="gdn",
            conv_kernel=self.kernel,
            num_heads=self.value_heads,
            head_dim=self.value_size,
            key_heads=self.key_heads,
            key_head_dim=self.key_size,
            state_dtype=state_dtype,
        )

    def around(self, name: str) -> Iterator[Module]:
        """Yield what every variant has around its projections in: convolution, step bias, decay, norm, output."""
        mixed = 2 * self.keys_width + self.values_width
        yield Tensor(name=f"{name}.conv1d", elements=mixed * self.kernel, sharded=True)
        yield Tensor(name=f"{name}.dt_bias", elements=self.value_heads, sharded=True)
        yield Tensor(name=f"{name}.A_log", elements=self.value_heads, sharded=True, dtype=FLOAT32)
        yield norm(f"{name}.norm", self.value_size)
        yield row(f"{name}.out_proj", self.values_width, self.hidden)


def read_delta_net(keys: ConfigKeys) -> DeltaNet:
    """Return the sizes that a config states under transformers' own names."""
    return DeltaNet(
        hidden=keys.required_size("hidden_size"),
        key_heads=keys.required_size("linear_num_key_heads"),
        key_size=keys.required_size("linear_key_head_dim"),
        value_heads=keys.required_size("linear_num_value_heads"),
        value_size=keys.required_size("linear_value_head_dim"),
        kernel=keys.required_size("linear_conv_kernel_dim"),
    )


def delta_net(net: DeltaNet, *, fused: bool, whole_gates: bool = False, name: str = "linear_attn") -> Iterator[Module]:
    """Yield the modules of one layer of Qwen's Gated DeltaNet (vLLM `QwenGatedDeltaNetAttention`).

    Checkpoints of Qwen3-Next hold the projections `fused`, those of Qwen3.5 apart; `whole_gates` keeps the gates of
    step and decay whole on every rank, as vLLM does for AWQ and GPTQ.
    """
    keys, values = net.keys_width, net.values_width
    if fused:
        yield column(f"{name}.in_proj_qkvz", net.hidden, ("in_proj_qkvz", 2 * keys + 2 * values, 4))
        yield column(f"{name}.in_proj_ba", net.hidden, ("in_proj_ba", 2 * net.value_heads))
    else:
        yield column(f"{name}.in_proj_qkvz", net.hidden, ("in_proj_qkv", 2 * keys + values, 3), ("in_proj_z", values))
        yield _gates(net, f"{name}.in_proj_ba", whole=whole_gates)
    yield from net.around(name)


def _gates(net: DeltaNet, name: str, *, whole: bool) -> Linear:
    shards = tuple(Shard(name=shard, outputs=net.value_heads) for shard in ("in_proj_b", "in_proj_a"))
    return Linear(name=name, inputs=net.hidden, shards=shards, split=Split.REPLICATED if whole else Split.COLUMN)
