"""State-space mixers: Mamba 1 and Mamba 2, whose state has one size whatever the length.

Source: vLLM 0.32 `layers.mamba.mamba_mixer`, `layers.mamba.mamba_mixer2`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.core.cache_layer import StateCache
from planner.core.modules import Linear, Module, Shard, Split, Tensor, column, norm, row

FLOAT32 = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba1:
    """A selective scan over `inner` channels of `state` elements each, behind a convolution of `kernel` taps.

    `normalises` adds norms to what is projected for step, B and C.
    """

    hidden: int
    inner: int
    state: int
    kernel: int
    step_rank: int
    conv_bias: bool = True
    bias: bool = False
    normalises: bool = False

    def cache(self, *, state_dtype: str = "") -> StateCache:
        """Return the state of one layer."""
        return StateCache(
            kind="mamba1",
            inner_size=self.inner,
            state_size=self.state,
            conv_kernel=self.kernel,
            state_dtype=state_dtype,
        )

    def modules(self, name: str) -> Iterator[Module]:
        """Yield the modules of one mixer, none of which vLLM quantises."""
        inner, state = self.inner, self.state
        yield _unquantised(column(f"{name}.conv1d", self.kernel, ("conv1d", inner), bias=self.conv_bias))
        yield _unquantised(
            column(f"{name}.in_proj", self.hidden, ("in_proj", inner), ("in_proj", inner), bias=self.bias)
        )
        yield _unquantised(row(f"{name}.x_proj", inner, self.step_rank + 2 * state))
        yield _unquantised(column(f"{name}.dt_proj", self.step_rank, ("dt_proj", inner), bias=True))
        yield Tensor(name=f"{name}.A", elements=inner * state, sharded=True, dtype=FLOAT32)
        yield Tensor(name=f"{name}.D", elements=inner, sharded=True)
        yield _unquantised(row(f"{name}.out_proj", inner, self.hidden, bias=self.bias))
        if self.normalises:
            yield norm(f"{name}.norms", self.step_rank + 2 * state)


def _unquantised(linear: Linear) -> Linear:
    return Linear(
        name=linear.name,
        inputs=linear.inputs,
        shards=linear.shards,
        split=linear.split,
        bias=linear.bias,
        may_quantise=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """Heads with a state each, whose B and C come in groups; a single group is repeated on every rank.

    `normalises` is the gated norm before the projection out.
    """

    hidden: int
    heads: int
    head_size: int
    groups: int
    state: int
    kernel: int
    conv_bias: bool = True
    bias: bool = False
    normalises: bool = True
    may_quantise: bool = True

    @property
    def inner(self) -> int:
        """Elements of all heads together."""
        return self.heads * self.head_size

    def cache(self, *, state_dtype: str = "") -> StateCache:
        """Return the state of one layer."""
        return StateCache(
            kind="mamba2",
            inner_size=self.inner,
            state_size=self.state,
            conv_kernel=self.kernel,
            num_heads=self.heads,
            head_dim=self.head_size,
            num_groups=self.groups,
            state_dtype=state_dtype,
        )

    def modules(self, name: str) -> Iterator[Module]:
        """Yield the modules of one mixer."""
        yield self._column(
            f"{name}.conv1d", self.kernel, self._convolved("conv1d"), bias=self.conv_bias, quantises=False
        )
        gate = Shard(name="in_proj", outputs=self.inner)
        steps = Shard(name="in_proj", outputs=self.heads)
        shards = (gate, *self._convolved("in_proj"), steps)
        yield self._column(f"{name}.in_proj", self.hidden, shards, bias=self.bias, quantises=self.may_quantise)
        yield Tensor(name=f"{name}.A", elements=self.heads, sharded=True, dtype=FLOAT32)
        yield Tensor(name=f"{name}.D", elements=self.heads, sharded=True)
        yield Tensor(name=f"{name}.dt_bias", elements=self.heads, sharded=True)
        if self.normalises:
            yield norm(f"{name}.norm", self.inner, sharded=True)
        yield self._out(f"{name}.out_proj")

    def _convolved(self, name: str) -> tuple[Shard, Shard, Shard]:
        group = Shard(name=name, outputs=self.groups * self.state, units=self.groups)
        return Shard(name=name, outputs=self.inner), group, group

    def _column(self, name: str, inputs: int, shards: tuple[Shard, ...], *, bias: bool, quantises: bool) -> Linear:
        return Linear(name=name, inputs=inputs, shards=shards, bias=bias, may_quantise=quantises)

    def _out(self, name: str) -> Linear:
        shard = Shard(name="out_proj", outputs=self.hidden)
        return Linear(
            name=name,
            inputs=self.inner,
            shards=(shard,),
            split=Split.ROW,
            bias=self.bias,
            may_quantise=self.may_quantise,
        )
