"""Every architecture that is planned, by the name that config.json gives it; what is not here is unknown."""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.architectures import dense
from planner.core.decoder import Architecture

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType({**dense.ARCHITECTURES})

MODEL_TYPES: Mapping[str, str] = MappingProxyType(
    {row.model_type: name for name, row in reversed(list(ARCHITECTURES.items()))}
)
