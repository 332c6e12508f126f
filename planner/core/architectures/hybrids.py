"""The architectures with windows, layers of different shapes or recurrent states, of every file of theirs."""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.architectures import gemma, gemma4, nemotron_h, qwen_next
from planner.core.decoder import Architecture

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType({**gemma.ARCHITECTURES, **gemma4.ARCHITECTURES, **nemotron_h.ARCHITECTURES, **qwen_next.ARCHITECTURES})
