"""Gemma 3n, text: several streams of the hidden state (AltUp), a low-rank shortcut (LAuReL), inputs for each layer.

Source: vLLM 0.32 `models.gemma3n`; transformers 5.19 `Gemma3nTextConfig`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.core.architectures.gemma import KINDS, LAYER_NORMS, window_of
from planner.core.architectures.mixture import whole_number
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Ends, Layer
from planner.core.errors import BadInput
from planner.core.grouped_attention import Heads, attention, borrowing_attention, read_heads
from planner.core.layer_types import full_every, layer_types, require_kinds
from planner.core.modules import Module, Table, Tensor, column, gated_mlp, norm, replicated, row
from planner.core.per_layer_inputs import PerLayerInputs
from planner.core.rope import Rope
from planner.core.rope_types import ropes_by_type
from planner.core.tower import numbers

PERIOD = 5
FLOAT32 = "float32"
PREFIX = "self_decoder."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    keys: ConfigKeys
    heads: Heads
    streams: int
    first_borrowing: int
    inputs: PerLayerInputs
    ropes: Mapping[str, Rope]

    def layers(self, kinds: tuple[str, ...], widths: tuple[int, ...]) -> tuple[Layer, ...]:
        """Return the layers; those of one kind and width are one layer, until the last ones borrow."""
        borrowing = [index >= self.first_borrowing for index in range(len(kinds))]
        held = list(zip(kinds, widths, borrowing, strict=True))
        made = {each: self.layer(*each[:2], borrows=each[2]) for each in dict.fromkeys(held)}
        return tuple(made[each] for each in held)

    def layer(self, kind: str, width: int, *, borrows: bool) -> Layer:
        cache = self.heads.cache(window=window_of(self.keys, kind), shared=borrows)
        modules = tuple(self._modules(width, borrows=borrows))
        return Layer(modules=modules, caches=(cache,), ropes=(self.ropes[kind],))

    def _modules(self, width: int, *, borrows: bool) -> Iterator[Module]:
        hidden, bias = self.heads.hidden, self.keys.flag("attention_bias")
        yield from self._streams()
        if borrows:
            yield from borrowing_attention(self.heads, bias=bias)
        else:
            yield from attention(self.heads, qkv_bias=bias, o_bias=bias, normalises=True)
        yield from gated_mlp("mlp", hidden, width)
        yield from _shortcut(hidden, self.keys.required_size("laurel_rank"))
        yield from self.inputs.layer(hidden)
        for name in LAYER_NORMS:
            yield norm(name, hidden)

    def _streams(self) -> Iterator[Module]:
        """How the streams of the hidden state are predicted and corrected."""
        hidden, streams = self.heads.hidden, self.streams
        yield replicated("altup.correction_coefs", streams, streams)
        yield replicated("altup.prediction_coefs", streams, streams**2)
        yield replicated("altup.modality_router", hidden, streams)
        yield norm("altup.router_norm", hidden)
        yield Tensor(name="altup.correct_output_scale", elements=hidden, dtype=FLOAT32)
        yield Tensor(name="altup.router_input_scale", elements=1, is_buffer=True)

    def ends(self) -> Iterator[Module]:
        """Yield what stands outside the layers, all of it on every stage; the head is the embedding."""
        hidden, streams = self.heads.hidden, range(self.streams - 1)
        yield Table(name="embed_tokens", rows=self.keys.required_size("vocab_size"), width=hidden)
        yield from self.inputs.ends(hidden, PREFIX)
        yield Tensor(name="scalars", elements=1, is_buffer=True)
        for stream in streams:
            yield column(f"{PREFIX}altup_projections.{stream}", hidden, (str(stream), hidden))
            yield column(f"altup_unembed_projections.{stream}", hidden, (str(stream), hidden))
        yield norm("final norm", hidden)


def build(keys: ConfigKeys) -> Decoder:
    """Return the language model; vLLM has no pipeline parallelism for it."""
    heads = read_heads(keys)
    kinds = require_kinds(layer_types(keys, full_every(PERIOD)), KINDS)
    widths = _widths(keys, len(kinds))
    plan = _Plan(
        keys=keys,
        heads=heads,
        streams=keys.required_size("altup_num_inputs"),
        first_borrowing=len(kinds) - whole_number(keys, "num_kv_shared_layers"),
        inputs=_inputs(keys, len(kinds)),
        ropes=ropes_by_type(keys, dict.fromkeys(kinds, heads.size)),
    )
    return Decoder(
        hidden_size=heads.hidden,
        intermediate_size=max(widths),
        vocab_size=keys.required_size("vocab_size"),
        num_attention_heads=heads.queries,
        num_kv_heads=heads.kv,
        head_dim=heads.size,
        layers=plan.layers(kinds, widths),
        ends=Ends(every=tuple(plan.ends())),
        ropes=tuple(plan.ropes.values()),
        context_rope=Rope(),
        tie_word_embeddings=True,
        supports_pp=False,
    )


def _shortcut(hidden: int, rank: int) -> tuple[Module, Module, Module]:
    return (
        column("laurel.linear_left", hidden, ("linear_left", rank)),
        row("laurel.linear_right", rank, hidden),
        norm("laurel.post_laurel_norm", hidden),
    )


def _inputs(keys: ConfigKeys, layers: int) -> PerLayerInputs:
    return PerLayerInputs(
        width=keys.required_size("hidden_size_per_layer_input"),
        layers=layers,
        vocab_size=keys.required_size("vocab_size_per_layer_input"),
    )


def _widths(keys: ConfigKeys, layers: int) -> tuple[int, ...]:
    widths = numbers(keys, "intermediate_size")
    if len(widths) not in (1, layers):
        message = f"intermediate_size states {len(widths)} widths for {layers} layers."
        raise BadInput(field="intermediate_size", message=message, fix="give one width, or one for each layer")
    return widths if len(widths) == layers else widths * layers


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"Gemma3nForCausalLM": Architecture(model_type="gemma3n_text", build=build, first="0.10.1")}
)
