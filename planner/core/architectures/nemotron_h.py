"""Nemotron-H and Nemotron 3: each layer is a state-space mixer, attention, an MLP or a mixture of experts.

Source: vLLM 0.32 `models.nemotron_h`; transformers 5.19 `NemotronHConfig`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, moved_everywhere, plain_ends
from planner.core.architectures.mixture import selection_bias, whole_number
from planner.core.cache_layer import Cache
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.errors import BadInput
from planner.core.grouped_attention import Heads, attention, read_heads
from planner.core.layer_types import require_kinds, texts
from planner.core.model_scope import unknown
from planner.core.modules import Experts, Linear, Module, column, norm, replicated, row
from planner.core.state_space import Mamba2
from planner.core.tower import numbers

MAMBA, ATTENTION, MLP, MOE = "mamba", "attention", "mlp", "moe"
LETTERS = {"M": MAMBA, "*": ATTENTION, "-": MLP, "E": MOE}
LATER_NAMES = {"linear_attention": MAMBA, "full_attention": ATTENTION}
KINDS = frozenset({MAMBA, ATTENTION, MLP, MOE})
NAMES = {"n_groups": "mamba_n_groups", "conv_kernel": "mamba_d_conv", "use_conv_bias": "mamba_conv_bias"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    keys: ConfigKeys
    heads: Heads
    mixer: Mamba2

    def layer(self, kind: str, width: int) -> Layer:
        modules = (*self._mixer(kind, width), norm("norm", self.heads.hidden))
        return Layer(modules=modules, caches=self._caches(kind))

    def _caches(self, kind: str) -> tuple[Cache, ...]:
        if kind == MAMBA:
            return (self.mixer.cache(state_dtype=self.keys.text("mamba_ssm_cache_dtype") or ""),)
        return (self.heads.cache(window=self.keys.size("sliding_window")),) if kind == ATTENTION else ()

    def _mixer(self, kind: str, width: int) -> Iterator[Module]:
        if kind == MAMBA:
            return self.mixer.modules("mixer")
        if kind == ATTENTION:
            return attention(self.heads, "mixer")
        if kind == MLP:
            return _mlp("mixer", self.heads.hidden, width, bias=self.keys.flag("mlp_bias"))
        return self._experts()

    def _experts(self) -> Iterator[Module]:
        """Experts work on a latent where there is one, the shared expert on the hidden state."""
        keys, hidden = self.keys, self.heads.hidden
        count = keys.required_size("n_routed_experts")
        latent = keys.size("moe_latent_size")
        gate = replicated("mixer.gate", hidden, count, may_quantise=False)
        yield replace(gate, computes_in_float32=True)
        yield selection_bias(count, name="mixer.gate.e_score_correction_bias")
        if shared := whole_number(keys, "n_shared_experts"):
            width = shared * keys.required_size("moe_shared_expert_intermediate_size")
            yield from _mlp("mixer.shared_experts", hidden, width)
        if latent is not None:
            yield from _latent_projections(hidden, latent, bias=keys.flag("mlp_bias"))
        yield Experts(
            name="mixer.experts",
            count=count,
            top_k=keys.required_size("num_experts_per_tok"),
            hidden_size=latent or hidden,
            intermediate_size=keys.required_size("moe_intermediate_size"),
            gated=False,
        )


def build(keys: ConfigKeys) -> Decoder:
    """Return the decoder, without the layers that predict several tokens."""
    if keys.has("block_configs"):
        raise unknown("block_configs", "layers that state their own shapes are not planned yet for this family.")
    kinds = layer_kinds(keys)
    plan = _Plan(keys=keys, heads=read_heads(keys), mixer=_mixer(keys))
    held = list(zip(kinds, _mlp_widths(keys, kinds), strict=True))
    layers = {each: plan.layer(*each) for each in dict.fromkeys(held)}
    ends = moved_everywhere(plain_ends(keys, tied=False), "embed_tokens", "final norm", "lm_head")
    decoder = assemble(keys, [layers[each] for each in held], width=_width(keys, kinds), heads=plan.heads, ends=ends)
    return replace(
        decoder,
        hf_to_vllm=(("backbone.", "model."),),
        tie_word_embeddings=False,
        experts_on_every_stage=MOE in kinds,
    )


def layer_kinds(keys: ConfigKeys) -> tuple[str, ...]:
    """Return the kind of each layer: from a list of names, or from a pattern of letters."""
    stated = texts(keys, "layers_block_type") or texts(keys, "layer_types")
    if stated is None:
        pattern = keys.text("hybrid_override_pattern") or "ME*-"
        stated = tuple(LETTERS.get(letter, letter) for letter in pattern)
    kinds = tuple(LATER_NAMES.get(kind, kind) for kind in stated)
    return require_kinds(kinds, KINDS, name="layers_block_type")


def _mixer(keys: ConfigKeys) -> Mamba2:
    return Mamba2(
        hidden=keys.required_size("hidden_size"),
        heads=keys.required_size("mamba_num_heads"),
        head_size=keys.required_size("mamba_head_dim"),
        groups=keys.required_size("n_groups"),
        state=keys.required_size("ssm_state_size"),
        kernel=keys.required_size("conv_kernel"),
        conv_bias=keys.flag("use_conv_bias"),
        bias=keys.flag("use_bias"),
    )


def _mlp_widths(keys: ConfigKeys, kinds: tuple[str, ...]) -> Iterator[int]:
    """One width for all MLPs, or one for each of them in turn; layers of another kind have none."""
    widths = numbers(keys, "intermediate_size")
    needed = kinds.count(MLP)
    if needed and len(widths) not in (1, needed):
        message = f"intermediate_size states {len(widths)} widths for {needed} MLPs."
        raise BadInput(field="intermediate_size", message=message, fix="give one width, or one for each MLP")
    remaining = iter(widths if len(widths) == needed else widths * needed)
    return (next(remaining) if kind == MLP else 0 for kind in kinds)


def _width(keys: ConfigKeys, kinds: tuple[str, ...]) -> int:
    if MLP in kinds:
        return max(numbers(keys, "intermediate_size"))
    if MOE not in kinds:
        return keys.required_size("hidden_size")
    shared = whole_number(keys, "n_shared_experts") * whole_number(keys, "moe_shared_expert_intermediate_size")
    return keys.required_size("num_experts_per_tok") * keys.required_size("moe_intermediate_size") + shared


def _mlp(name: str, hidden: int, width: int, *, bias: bool = False) -> Iterator[Module]:
    yield column(f"{name}.up_proj", hidden, ("up_proj", width), bias=bias)
    yield row(f"{name}.down_proj", width, hidden, bias=bias)


def _latent_projections(hidden: int, latent: int, *, bias: bool) -> tuple[Linear, Linear]:
    return (
        replicated("mixer.fc1_latent_proj", hidden, latent, bias=bias),
        replicated("mixer.fc2_latent_proj", latent, hidden, bias=bias),
    )


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"NemotronHForCausalLM": Architecture(model_type="nemotron_h", build=build, names=NAMES, first="0.9")}
)
