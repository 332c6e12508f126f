"""Qwen3-Next, Qwen3.5 and 3.6: Gated DeltaNet in three of four layers, gated attention in the fourth.

Source: vLLM 0.32 `models.qwen3_next`, `models.qwen3_5`, `layers.mamba.gdn.qwen_gdn_linear_attn`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, layer_norms, moved_everywhere, plain_ends
from planner.core.architectures.mixture import Mixture, read_mixture, routed, router, shared_experts
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Ends, Layer
from planner.core.delta_net import DeltaNet, delta_net, read_delta_net
from planner.core.engine import Version
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.layer_types import FULL, LINEAR, layer_types, require_kinds
from planner.core.modules import Module, gated_mlp, replicated
from planner.core.rope import Rope, read_rope
from planner.core.tower import numbers

KINDS = frozenset({FULL, LINEAR})
ONE_ROW_SINCE = Version(0, 32)
WHOLE_GATES = frozenset({"awq", "gptq", "auto-round", "inc"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What the layers of one model have in common; `fused` tells Qwen3-Next's checkpoints from later ones."""

    keys: ConfigKeys
    heads: Heads
    net: DeltaNet
    mixture: Mixture | None
    fused: bool
    rope: Rope

    def layer(self, kind: str, *, sparse: bool) -> Layer:
        attends = kind == FULL
        mixing = self._attention() if attends else self._recurrence()
        modules = (*mixing, *self._feed_forward(sparse=sparse), layer_norms(self.heads.hidden))
        state = self.net.cache(state_dtype="" if self.fused else self.keys.text("mamba_ssm_dtype") or "")
        if attends:
            return Layer(modules=modules, caches=(self.heads.cache(),), ropes=(self.rope,))
        return Layer(modules=modules, caches=(state,))

    def _attention(self) -> Iterator[Module]:
        gated = self.keys.value("attn_output_gate") is not False
        yield from attention(self.heads, qkv_bias=self.keys.flag("qkv_bias"), normalises=True, gated=gated)

    def _recurrence(self) -> Iterator[Module]:
        stated = self.keys.mapping("quantization_config") or {}
        whole_gates = str(stated.get("quant_method")) in WHOLE_GATES
        yield from delta_net(self.net, fused=self.fused, whole_gates=whole_gates)

    def _feed_forward(self, *, sparse: bool) -> Iterator[Module]:
        if self.mixture is None or not sparse:
            yield from gated_mlp("mlp", self.heads.hidden, self.keys.required_size("intermediate_size"))
            return
        yield router(self.mixture)
        yield replicated("mlp.shared_expert_gate", self.heads.hidden, 1, may_quantise=False)
        yield from shared_experts(self.mixture, name="mlp.shared_expert")
        yield routed(self.mixture)

    def sparse_layers(self, count: int) -> list[bool]:
        """Return which layers hold experts: of Qwen3-Next, all but the excepted ones."""
        if not self.fused or self.mixture is None:
            return [self.mixture is not None] * count
        step, dense = self.keys.size("decoder_sparse_step") or 1, numbers(self.keys, "mlp_only_layers")
        return [index not in dense and (index + 1) % step == 0 for index in range(count)]


def build(keys: ConfigKeys, *, sparse: bool, fused: bool) -> Decoder:
    """Return the language model, with experts if it is `sparse`; `fused` is Qwen3-Next."""
    heads = read_heads(keys)
    plan = _Plan(
        keys=keys,
        heads=heads,
        net=read_delta_net(keys),
        mixture=read_mixture(keys, shared_width="shared_expert_intermediate_size") if sparse else None,
        fused=fused,
        rope=_rope(keys, heads),
    )
    interval = keys.size("full_attention_interval") or 4
    kinds = layer_types(keys, lambda index: LINEAR if (index + 1) % interval else FULL)
    held = list(zip(require_kinds(kinds, KINDS), plan.sparse_layers(len(kinds)), strict=True))
    layers = {(kind, experts): plan.layer(kind, sparse=experts) for kind, experts in dict.fromkeys(held)}
    width = plan.mixture.token_width if plan.mixture else keys.required_size("intermediate_size")
    decoder = assemble(
        keys,
        [layers[each] for each in held],
        width=width,
        heads=heads,
        ends=_ends(keys, fused=fused),
        ropes=(plan.rope,),
    )
    tied = decoder.tie_word_embeddings and not fused
    return replace(decoder, tie_word_embeddings=tied, experts_on_every_stage=sparse)


def _ends(keys: ConfigKeys, *, fused: bool) -> Ends:
    """Qwen3-Next builds its head on every stage and never ties it."""
    if fused:
        return moved_everywhere(plain_ends(keys, tied=False), "embed_tokens", "lm_head")
    return moved_everywhere(plain_ends(keys), "embed_tokens")


def _rope(keys: ConfigKeys, heads: Heads) -> Rope:
    return replace(read_rope(keys, head_dim=heads.size), one_row_since=ONE_ROW_SINCE)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "Qwen3NextForCausalLM": Architecture(
            model_type="qwen3_next", build=partial(build, sparse=True, fused=True), first="0.10.2"
        ),
        "Qwen3_5ForCausalLM": Architecture(
            model_type="qwen3_5_text", build=partial(build, sparse=False, fused=False), first="0.27"
        ),
        "Qwen3_5MoeForCausalLM": Architecture(
            model_type="qwen3_5_moe_text", build=partial(build, sparse=True, fused=False), first="0.27"
        ),
    }
)
