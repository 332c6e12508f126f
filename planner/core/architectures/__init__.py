"""Every architecture that is planned, by the name that config.json gives it; what is not here is unknown."""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.architectures import dense, eagle, hybrids, mixtures, multimodal
from planner.core.decoder import Architecture
from planner.core.tower import wrapped

_LANGUAGE_MODELS: Mapping[str, Architecture] = MappingProxyType(
    {**dense.ARCHITECTURES, **hybrids.ARCHITECTURES, **mixtures.ARCHITECTURES}
)

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        **_LANGUAGE_MODELS,
        **wrapped(multimodal.WRAPPERS, _LANGUAGE_MODELS),
        **multimodal.ARCHITECTURES,
        **eagle.ARCHITECTURES,
    }
)

MODEL_TYPES: Mapping[str, str] = MappingProxyType(
    {row.model_type: name for name, row in reversed(list(ARCHITECTURES.items()))}
)
