"""Models of state-space mixers alone: Mamba 1 and 2, and Falcon Mamba. They attend to nothing.

Source: vLLM 0.32 `models.mamba`, `models.mamba2`.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

from planner.core.architectures.assembly import assemble, moved_everywhere, plain_ends
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer
from planner.core.grouped_attention import Heads
from planner.core.modules import norm
from planner.core.state_space import Mamba1, Mamba2

STEP_RANK_DIVISOR = 16


def build_mamba(keys: ConfigKeys) -> Decoder:
    """Return a Mamba 1 or a Falcon Mamba, whose norms have no weights."""
    hidden = keys.required_size("hidden_size")
    rank = keys.value("time_step_rank")
    mixer = Mamba1(
        hidden=hidden,
        inner=_inner(keys, hidden),
        state=keys.required_size("state_size"),
        kernel=keys.required_size("conv_kernel"),
        step_rank=math.ceil(hidden / STEP_RANK_DIVISOR)
        if rank in (None, "auto")
        else keys.required_size("time_step_rank"),
        conv_bias=keys.flag("use_conv_bias"),
        bias=keys.flag("use_bias"),
    )
    return _decoder(keys, mixer)


def build_mamba2(keys: ConfigKeys) -> Decoder:
    """Return a Mamba 2, which vLLM doesn't split over pipeline stages."""
    hidden = keys.required_size("hidden_size")
    mixer = Mamba2(
        hidden=hidden,
        heads=keys.required_size("num_heads"),
        head_size=keys.required_size("head_dim"),
        groups=keys.required_size("n_groups"),
        state=keys.required_size("state_size"),
        kernel=keys.required_size("conv_kernel"),
        conv_bias=keys.flag("use_conv_bias"),
        bias=keys.flag("use_bias"),
    )
    return _decoder(keys, mixer, supports_pp=False)


def _inner(keys: ConfigKeys, hidden: int) -> int:
    return keys.size("intermediate_size") or int((keys.number("expand") or 2) * hidden)


def _decoder(keys: ConfigKeys, mixer: Mamba1 | Mamba2, *, supports_pp: bool = True) -> Decoder:
    layer = Layer(modules=(*mixer.modules("mixer"), norm("norm", mixer.hidden)), caches=(mixer.cache(),))
    return assemble(
        keys,
        (layer,) * keys.required_size("num_hidden_layers"),
        width=mixer.inner,
        heads=Heads(hidden=mixer.hidden, queries=0, kv=0, size=0),
        ends=moved_everywhere(plain_ends(keys), "embed_tokens", "final norm", "lm_head"),
        supports_pp=supports_pp,
    )


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "MambaForCausalLM": Architecture(model_type="mamba", build=build_mamba),
        "FalconMambaForCausalLM": Architecture(model_type="falcon_mamba", build=build_mamba),
        "Mamba2ForCausalLM": Architecture(model_type="mamba2", build=build_mamba2),
    }
)
