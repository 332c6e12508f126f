"""How checkpoints are quantised: what their configs say, and which scheme each layer of a model gets from it."""

from functools import partial

from planner.core.decoder import Decoder
from planner.core.engine import Version
from planner.core.quantization.checkpoint import Quantization, read_quantization
from planner.core.quantization.online import online_recipe
from planner.core.quantization.schemes import mapped_by, name_map, with_schemes

__all__ = ["Quantization", "quantised", "quantised_at_load", "read_quantization"]


def quantised(decoder: Decoder, quantization: Quantization) -> Decoder:
    """Return the decoder with the scheme that the checkpoint gives each layer.

    Raises Unknown for a layout that is not planned, BadInput for a config that contradicts itself.
    """
    mapped = partial(mapped_by, name_map(decoder.hf_to_vllm))
    return with_schemes(decoder, quantization.recipe(mapped))


def quantised_at_load(decoder: Decoder, name: str, version: Version | None = None) -> Decoder:
    """Return the decoder as `--quantization NAME` makes it of an unquantised checkpoint."""
    return with_schemes(decoder, online_recipe(name, version))
