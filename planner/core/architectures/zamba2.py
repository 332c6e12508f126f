"""Zamba 2: Mamba 2 mixers, and a few attention blocks that many layers share, each with adapters of its own.

Source: vLLM 0.32 `models.zamba2`; transformers 5.19 `Zamba2Config`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, moved_everywhere, plain_ends
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.grouped_attention import Heads
from planner.core.layer_types import LINEAR, layer_types, require_kinds
from planner.core.modules import Module, column, gated_mlp, kv_scales, norm, qkv, replicated, row
from planner.core.rope import read_rope
from planner.core.state_space import Mamba2

HYBRID = "hybrid"
OLDER_KINDS = {"mamba": LINEAR}
KINDS = frozenset({LINEAR, HYBRID})
USUAL_HYBRIDS = frozenset({*range(6, 43, 6), 47, 51})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    keys: ConfigKeys
    heads: Heads
    mixer: Mamba2
    width: int

    @property
    def hidden(self) -> int:
        return self.mixer.hidden

    def recurrent(self) -> Layer:
        return Layer(modules=tuple(self._mixing()), caches=(self.mixer.cache(),))

    def hybrid(self) -> Layer:
        modules = (*self._mixing(), replicated("linear", self.hidden, self.hidden), *self._adapters())
        return Layer(modules=(*modules, kv_scales("self_attn.attn")), caches=(self.heads.cache(), self.mixer.cache()))

    def _mixing(self) -> Iterator[Module]:
        yield from self.mixer.modules("mixer")
        yield norm("input_layernorm", self.hidden)

    def _adapters(self) -> Iterator[Module]:
        """What bends the shared block for this layer."""
        rank, attended = self.keys.required_size("adapter_rank"), self.heads.hidden
        yield column("feed_forward.gate_up_proj_adapter.A", self.hidden, ("A", rank))
        yield column("feed_forward.gate_up_proj_adapter.B", rank, ("B", 2 * self.width, 2))
        if self.keys.flag("use_shared_attention_adapter"):
            for of in ("q", "k", "v"):
                yield column(f"self_attn.linear_{of}_adapter.A", attended, ("A", rank))
                yield column(f"self_attn.linear_{of}_adapter.B", rank, ("B", attended))

    def shared(self, block: int) -> Iterator[Module]:
        """Yield one of the shared blocks: it attends to the hidden state beside the embedding."""
        name, bias = f"shared_transformer.{block}", self.keys.flag("add_bias_linear")
        heads = self.heads
        yield qkv(
            f"{name}.self_attn.qkv_proj",
            hidden=heads.hidden,
            heads=heads.queries,
            kv_heads=heads.kv,
            head_dim=heads.size,
        )
        yield row(f"{name}.self_attn.o_proj", heads.width, self.hidden)
        yield from gated_mlp(f"{name}.feed_forward", self.hidden, self.width, bias=bias)
        yield norm(f"{name}.norms", 3 * self.hidden)


def build(keys: ConfigKeys) -> Decoder:
    """Return the decoder, which vLLM neither splits over stages nor unties."""
    plan = _plan(keys)
    stated = layer_types(keys, lambda index: HYBRID if index in USUAL_HYBRIDS else LINEAR, name="layers_block_type")
    kinds = require_kinds(tuple(OLDER_KINDS.get(kind, kind) for kind in stated), KINDS, name="layers_block_type")
    layers = {LINEAR: plan.recurrent(), HYBRID: plan.hybrid()}
    blocks = range(keys.required_size("num_mem_blocks"))
    ends = moved_everywhere(plain_ends(keys, tied=True), "embed_tokens", "final norm")
    shared = tuple(module for block in blocks for module in plan.shared(block))
    decoder = assemble(
        keys,
        [layers[kind] for kind in kinds],
        width=plan.width,
        heads=plan.heads,
        ends=replace(ends, every=(*ends.every, *shared)),
        ropes=(read_rope(keys, head_dim=plan.heads.size),) if keys.flag("use_mem_rope") else (),
        supports_pp=False,
    )
    return replace(decoder, tie_word_embeddings=True)


def _plan(keys: ConfigKeys) -> _Plan:
    hidden, queries = keys.required_size("hidden_size"), keys.required_size("num_attention_heads")
    inner, heads = keys.required_size("mamba_expand") * hidden, keys.required_size("n_mamba_heads")
    return _Plan(
        keys=keys,
        heads=Heads(hidden=2 * hidden, queries=queries, kv=queries, size=2 * hidden // queries),
        mixer=Mamba2(
            hidden=hidden,
            heads=heads,
            head_size=inner // heads,
            groups=keys.required_size("mamba_ngroups"),
            state=keys.required_size("mamba_d_state"),
            kernel=keys.required_size("mamba_d_conv"),
            conv_bias=keys.flag("use_conv_bias"),
            bias=keys.flag("add_bias_linear"),
        ),
        width=keys.size("intermediate_size") or 4 * hidden,
    )


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"Zamba2ForCausalLM": Architecture(model_type="zamba2", build=build)}
)
