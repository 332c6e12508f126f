"""The models that see or hear: the classes that wrap a language model, and those that read on their own."""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.architectures import (
    gemma3n_towers,
    gemma_vision,
    glm_vision,
    internvl,
    kimi_vision,
    llama_vision,
    llava,
    minimax_vision,
    mllama,
    phi_vision,
    pixtral,
    qwen_vl,
    whisper,
)
from planner.core.decoder import Architecture
from planner.core.tower import Wrapper

WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        **qwen_vl.WRAPPERS,
        **gemma_vision.WRAPPERS,
        **gemma3n_towers.WRAPPERS,
        **pixtral.WRAPPERS,
        **llama_vision.WRAPPERS,
        **kimi_vision.WRAPPERS,
        **minimax_vision.WRAPPERS,
        **llava.WRAPPERS,
        **glm_vision.WRAPPERS,
        **internvl.WRAPPERS,
        **phi_vision.WRAPPERS,
    }
)

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType({**whisper.ARCHITECTURES, **mllama.ARCHITECTURES})
