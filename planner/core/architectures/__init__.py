"""Every architecture that is planned, by the name that config.json gives it; what is not here is unknown."""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.architectures import dense, gemma_vision, hybrids, llama_vision, mixtures, pixtral, qwen_vl
from planner.core.decoder import Architecture
from planner.core.tower import wrapped

_LANGUAGE_MODELS: Mapping[str, Architecture] = MappingProxyType({**dense.ARCHITECTURES, **hybrids.ARCHITECTURES, **mixtures.ARCHITECTURES})
_WRAPPERS = {**qwen_vl.WRAPPERS, **gemma_vision.WRAPPERS, **pixtral.WRAPPERS, **llama_vision.WRAPPERS}

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {**_LANGUAGE_MODELS, **wrapped(_WRAPPERS, _LANGUAGE_MODELS)}
)

MODEL_TYPES: Mapping[str, str] = MappingProxyType(
    {row.model_type: name for name, row in reversed(list(ARCHITECTURES.items()))}
)
