"""The mixture of experts of one layer: router, routed and shared experts, and which layers have one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.core.config_keys import ConfigKeys
from planner.core.errors import BadInput
from planner.core.modules import Experts, Linear, Module, Shard, Split, Tensor, gated_mlp

FLOAT32 = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Routed experts beside those that every token takes (`shared_width`, 0 where there are none)."""

    hidden_size: int
    count: int
    top_k: int
    width: int
    shared_width: int = 0

    @property
    def token_width(self) -> int:
        """How wide the experts of one token are together."""
        return self.top_k * self.width + self.shared_width


def read_mixture(
    keys: ConfigKeys,
    *,
    count: str = "num_experts",
    top_k: str = "num_experts_per_tok",
    width: str = "moe_intermediate_size",
    shared: str = "",
    shared_width: str = "",
) -> Mixture:
    """Return the mixture that the config states under these keys.

    `shared` names how many shared experts of the routed width there are, `shared_width` how wide they are together.
    """
    wide = keys.required_size(width)
    together = whole_number(keys, shared_width) if shared_width else 0
    return Mixture(
        hidden_size=keys.required_size("hidden_size"),
        count=keys.required_size(count),
        top_k=keys.required_size(top_k),
        width=wide,
        shared_width=together + (whole_number(keys, shared) * wide if shared else 0),
    )


def whole_number(keys: ConfigKeys, name: str, default: int = 0) -> int:
    """Return a whole number of at least zero; the default where the key is absent or null."""
    value = keys.value(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise keys.wrong(name, value, "a whole number")
    return value


def routed(
    mixture: Mixture, *, name: str = "mlp", bias: bool = False, gated: bool = True, may_quantise: bool = True
) -> Experts:
    """Return the routed experts (vLLM `FusedMoE`)."""
    return Experts(
        name=f"{name}.experts",
        count=mixture.count,
        top_k=mixture.top_k,
        hidden_size=mixture.hidden_size,
        intermediate_size=mixture.width,
        gated=gated,
        bias=bias,
        may_quantise=may_quantise,
    )


def router(
    mixture: Mixture,
    *,
    name: str = "mlp.gate",
    dtype: str | None = None,
    bias: bool = False,
) -> Linear:
    """Return the router, whole on every rank and never quantised."""
    return Linear(
        name=name,
        inputs=mixture.hidden_size,
        shards=(Shard(name=name.rpartition(".")[2], outputs=mixture.count),),
        split=Split.REPLICATED,
        bias=bias,
        dtype=dtype,
        may_quantise=False,
    )


def selection_bias(
    count: int, *, name: str = "mlp.gate.e_score_correction_bias", dtype: str | None = FLOAT32
) -> Tensor:
    """Return the bias that balances which experts are chosen, one a routed expert."""
    return Tensor(name=name, elements=count, dtype=dtype)


def shared_experts(mixture: Mixture, *, name: str = "mlp.shared_experts", bias: bool = False) -> Iterator[Module]:
    """Return the experts that every token takes, as one MLP."""
    if mixture.shared_width:
        yield from gated_mlp(name, mixture.hidden_size, mixture.shared_width, bias=bias)


def sparse_layers(keys: ConfigKeys, layers: int) -> tuple[bool, ...]:
    """Return which layers hold experts where `mlp_layer_types` says it, else those from `first_k_dense_replace` on."""
    kinds = keys.value("mlp_layer_types")
    if isinstance(kinds, Sequence) and not isinstance(kinds, str):
        return tuple(kind == "sparse" for kind in kinds[:layers])
    dense = whole_number(keys, "first_k_dense_replace")
    return tuple(layer >= dense for layer in range(layers))


def flags_by_layer(keys: ConfigKeys, name: str, layers: int) -> tuple[bool, ...]:
    """Return a list of zeros and ones, one a layer; BadInput where it is shorter than the model."""
    stated = keys.value(name)
    if not isinstance(stated, list | tuple) or len(stated) < layers:
        message = f"{name} must be a list with a number for each of the {layers} layers."
        raise BadInput(field=name, message=message, fix="give it as the checkpoint's config.json has it")
    return tuple(bool(value) for value in stated[:layers])
