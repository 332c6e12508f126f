"""The architectures with windows, layers of different shapes or recurrent states, of every file of theirs."""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.architectures import (
    gemma,
    gemma3n,
    gemma4,
    jamba,
    lfm2,
    mamba,
    mamba2_hybrids,
    nemotron_h,
    nemotron_nas,
    olmo_hybrid,
    qwen_next,
    zamba2,
)
from planner.core.decoder import Architecture

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        **gemma.ARCHITECTURES,
        **gemma3n.ARCHITECTURES,
        **gemma4.ARCHITECTURES,
        **jamba.ARCHITECTURES,
        **lfm2.ARCHITECTURES,
        **mamba.ARCHITECTURES,
        **mamba2_hybrids.ARCHITECTURES,
        **nemotron_h.ARCHITECTURES,
        **nemotron_nas.ARCHITECTURES,
        **olmo_hybrid.ARCHITECTURES,
        **qwen_next.ARCHITECTURES,
        **zamba2.ARCHITECTURES,
    }
)
