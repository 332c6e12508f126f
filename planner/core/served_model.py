"""A model as a command serves it: quantised while it is loaded, where the command says so."""

from dataclasses import replace

from planner.core.engine import EngineArgs, Version
from planner.core.json_flags import json_flag
from planner.core.model import Model
from planner.core.quantization import quantised_at_load


def as_served(model: Model, args: EngineArgs, version: Version | None = None) -> Model:
    """Return the model with what `--quantization` makes of an unquantised checkpoint; a quantised one stays as it is.

    Raises Unknown for a method whose effect is not known.
    """
    if not args.quantization or model.quantization is not None:
        return model
    decoder = quantised_at_load(model.decoder, args.quantization, version)
    predictor = quantised_at_load(model.predictor, args.quantization, version) if model.predictor else None
    return replace(model, decoder=decoder, predictor=predictor)


def redundant_experts(args: EngineArgs) -> int:
    """Return the copies of experts that EPLB adds to each layer: `num_redundant_experts` of `--eplb-config`.

    Source: vLLM `config.parallel.EPLBConfig` (0.10.1 to 0.32), `--num-redundant-experts` before.
    """
    if not args.enable_eplb:
        return 0
    alone = args.number("num_redundant_experts")
    stated = json_flag(args, "eplb_config").get("num_redundant_experts")
    return int(stated if isinstance(stated, int) else alone or 0)
