"""Gemma 4: heads of another size where attention is full, keys and values borrowed by the last layers, experts or not.

Source: vLLM 0.32 `models.gemma4`; transformers 5.19 `Gemma4TextConfig` for what a layer overrides.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from planner.core.architectures.gemma import KINDS, LAYER_NORMS, window_of
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Ends, Layer
from planner.core.grouped_attention import Heads, attention, borrowing_attention, read_heads
from planner.core.layer_types import FULL, SLIDING, full_every, layer_types, require_kinds
from planner.core.model_scope import unknown
from planner.core.modules import Experts, Module, Table, Tensor, gated_mlp, norm, replicated
from planner.core.per_layer_inputs import PerLayerInputs
from planner.core.rope import Rope
from planner.core.rope_types import PROPORTIONAL, ropes_by_type

PERIOD = 6
FULL_HEAD_DIM = 512
EXPERT_NORMS = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
ROPES = {FULL: PROPORTIONAL}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What decides a layer beside its kind."""

    keys: ConfigKeys
    heads: Mapping[str, Heads]
    width: int
    first_borrowing: int
    inputs: PerLayerInputs | None
    ropes: Mapping[str, Rope]

    def layers(self, kinds: tuple[str, ...]) -> tuple[Layer, ...]:
        """Return the layers; those of one kind are one layer, until the last ones borrow."""
        held = [(kind, index >= self.first_borrowing) for index, kind in enumerate(kinds)]
        made = {(kind, borrows): self.layer(kind, borrows=borrows) for kind, borrows in dict.fromkeys(held)}
        return tuple(made[each] for each in held)

    def layer(self, kind: str, *, borrows: bool) -> Layer:
        heads = self.heads[kind]
        width = self.width * (2 if borrows and self.keys.flag("use_double_wide_mlp") else 1)
        cache = heads.cache(window=window_of(self.keys, kind), shared=borrows)
        return Layer(
            modules=tuple(self._modules(heads, width, borrows=borrows)), caches=(cache,), ropes=(self.ropes[kind],)
        )

    def _modules(self, heads: Heads, width: int, *, borrows: bool) -> Iterator[Module]:
        bias = self.keys.flag("attention_bias")
        if borrows:
            yield from borrowing_attention(heads, bias=bias)
        else:
            yield from attention(heads, qkv_bias=bias, o_bias=bias, normalises=True)
        yield from gated_mlp("mlp", heads.hidden, width)
        for name in LAYER_NORMS:
            yield norm(name, heads.hidden)
        if self.keys.size("num_experts") is not None:
            yield from _experts(self.keys, heads.hidden)
        if self.inputs is not None:
            yield from self.inputs.layer(heads.hidden)
        yield Tensor(name="layer_scalar", elements=1, is_buffer=True)


def build(keys: ConfigKeys) -> Decoder:
    """Return the language model of Gemma 4."""
    if keys.has("per_layer_config"):
        raise unknown("per_layer_config", "layers that state their own shapes are not planned yet.")
    kinds = _kinds(keys)
    heads = _heads(keys)
    plan = _Plan(
        keys=keys,
        heads=heads,
        width=keys.required_size("intermediate_size"),
        first_borrowing=len(kinds) - int(keys.number("num_kv_shared_layers") or 0),
        inputs=_inputs(keys, len(kinds)),
        ropes=ropes_by_type(keys, {kind: held.size for kind, held in heads.items()}, otherwise=ROPES),
    )
    tied = keys.flag("tie_word_embeddings")
    windowed = heads[SLIDING]
    return Decoder(
        hidden_size=windowed.hidden,
        intermediate_size=plan.width,
        vocab_size=keys.required_size("vocab_size"),
        num_attention_heads=windowed.queries,
        num_kv_heads=windowed.kv,
        head_dim=windowed.size,
        layers=plan.layers(kinds),
        ends=Ends(every=tuple(_ends(keys, plan, tied=tied))),
        ropes=tuple(plan.ropes.values()),
        tie_word_embeddings=tied,
    )


def _kinds(keys: ConfigKeys) -> tuple[str, ...]:
    """The last layer is forced to attend to everything."""
    kinds = require_kinds(layer_types(keys, full_every(PERIOD)), KINDS)
    return (*kinds[:-1], FULL)


def _heads(keys: ConfigKeys) -> Mapping[str, Heads]:
    windowed = read_heads(keys)
    size = keys.size("global_head_dim") or FULL_HEAD_DIM
    kv = keys.size("num_global_key_value_heads") if keys.flag("attention_k_eq_v") else None
    return {SLIDING: windowed, FULL: replace(windowed, size=size, kv=kv or windowed.kv)}


def _inputs(keys: ConfigKeys, layers: int) -> PerLayerInputs | None:
    width = int(keys.number("hidden_size_per_layer_input") or 0)
    if not width:
        return None
    vocab_size = keys.size("vocab_size_per_layer_input") or keys.required_size("vocab_size")
    return PerLayerInputs(width=width, layers=layers, vocab_size=vocab_size)


def _experts(keys: ConfigKeys, hidden: int) -> Iterator[Module]:
    count = keys.required_size("num_experts")
    yield Tensor(name="router.scale", elements=hidden)
    yield Tensor(name="router.per_expert_scale", elements=count)
    yield Tensor(name="router.root_size", elements=1, is_buffer=True)
    yield replicated("router.proj", hidden, count, may_quantise=False)
    yield Experts(
        name="experts",
        count=count,
        top_k=keys.required_size("top_k_experts"),
        hidden_size=hidden,
        intermediate_size=keys.size("moe_intermediate_size") or keys.required_size("expert_intermediate_size"),
    )
    for name in EXPERT_NORMS:
        yield norm(name, hidden)


def _ends(keys: ConfigKeys, plan: _Plan, *, tied: bool) -> Iterator[Module]:
    hidden, vocab_size = keys.required_size("hidden_size"), keys.required_size("vocab_size")
    yield Table(name="embed_tokens", rows=vocab_size, width=hidden)
    if plan.inputs is not None:
        yield from plan.inputs.ends(hidden)
    yield norm("final norm", hidden)
    yield Tensor(name="scalars", elements=1, is_buffer=True)
    if not tied:
        yield Table(name="lm_head", rows=vocab_size, width=hidden)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"Gemma4ForCausalLM": Architecture(model_type="gemma4_text", build=build, first="0.19")}
)
