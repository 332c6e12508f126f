"""Rotary tables of models whose kinds of layers rotate differently: windows by a local base, others by their own."""

from collections.abc import Mapping
from dataclasses import replace

from planner.core.config_keys import ConfigKeys, finite
from planner.core.errors import Unknown
from planner.core.layer_types import FULL
from planner.core.rope import Rope, read_rope

LOCAL_BASE = 10_000.0
GLOBAL_BASE = 1_000_000.0
PROPORTIONAL = {"rope_type": "proportional", "partial_rotary_factor": 0.25}


def ropes_by_type(
    keys: ConfigKeys,
    head_dims: Mapping[str, int],
    *,
    otherwise: Mapping[str, Mapping[str, object]] | None = None,
) -> Mapping[str, Rope]:
    """Return the rotary table of each kind of layer, given the size of its heads; vLLM shares those that are equal.

    `otherwise` is what the class takes for a kind where `rope_parameters` is absent. Source: transformers'
    `Gemma3TextConfig.convert_rope_params_to_dict`, vLLM `layers.rotary_embedding.get_rope`.
    """
    return {kind: _rope(keys, kind, head_dim, otherwise or {}) for kind, head_dim in head_dims.items()}


def _rope(keys: ConfigKeys, kind: str, head_dim: int, otherwise: Mapping[str, Mapping[str, object]]) -> Rope:
    scaling = _scaling(keys, kind, otherwise)
    whole = head_dim if scaling.get("rope_type") == "proportional" else None
    rope = read_rope(keys, head_dim=head_dim, rotary_dim=whole, scaling=scaling)
    return replace(rope, base=finite("rope_theta", scaling.get("rope_theta") or _base(keys, kind)))


def _scaling(keys: ConfigKeys, kind: str, otherwise: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    by_kind = keys.mapping("rope_parameters")
    if by_kind is None:
        older = keys.mapping("rope_scaling") if kind == FULL else None
        return older or otherwise.get(kind, {})
    stated = by_kind.get(kind)
    if isinstance(stated, Mapping):
        return stated
    raise Unknown(
        field="rope_parameters",
        message=f"unknown architecture: rope_parameters say nothing of {kind} layers.",
        fix=f"add {kind} to rope_parameters in config.json",
    )


def _base(keys: ConfigKeys, kind: str) -> float:
    stated = keys.number("rope_theta") if kind == FULL else keys.number("rope_local_base_freq")
    return stated or (GLOBAL_BASE if kind == FULL else LOCAL_BASE)
