"""Rotary tables of models whose kinds of layers rotate differently: windows by a local base, full attention by its own."""

from collections.abc import Iterable, Mapping

from planner.core.config_keys import ConfigKeys, finite
from planner.core.errors import Unknown
from planner.core.layer_types import FULL
from planner.core.rope import Rope, read_rope

LOCAL_BASE = 10_000.0
GLOBAL_BASE = 1_000_000.0
PROPORTIONAL = {"rope_type": "proportional", "partial_rotary_factor": 0.25}


def ropes_by_type(
    keys: ConfigKeys,
    kinds: Iterable[str],
    head_dims: Mapping[str, int],
    *,
    otherwise: Mapping[str, Mapping[str, object]] | None = None,
) -> tuple[Rope, ...]:
    """Return one table for each different rotation among the kinds of layers; vLLM shares those that are equal.

    `otherwise` is what the class takes for a kind where `rope_parameters` is absent. Source: transformers'
    `Gemma3TextConfig.convert_rope_params_to_dict`, vLLM `layers.rotary_embedding.get_rope`.
    """
    found: dict[tuple[float, Rope], Rope] = {}
    for kind in dict.fromkeys(kinds):
        scaling = _scaling(keys, kind, otherwise or {})
        base = finite("rope_theta", scaling.get("rope_theta") or _base(keys, kind))
        whole = head_dims[kind] if scaling.get("rope_type") == "proportional" else None
        rope = read_rope(keys, head_dim=head_dims[kind], rotary_dim=whole, scaling=scaling)
        found.setdefault((base, rope), rope)
    return tuple(found.values())


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
