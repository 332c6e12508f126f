"""Rotary positions as a config.json states them, and the length of the cosine and sine table vLLM keeps for them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from planner.core.config_keys import ConfigKeys, finite
from planner.core.engine import Version
from planner.core.errors import BadInput, Unknown
from planner.core.units import DTYPE_BYTES

NO_KEY_POSITIONS = 8192
KINDS = frozenset({"default", "llama3", "linear", "dynamic", "yarn", "longrope", "proportional"})
LEGACY_KINDS = {"su": "longrope", "mrope": "default"}
KEEPS_ORIGINAL_LENGTH = frozenset({"llama3", "yarn", "longrope"})
MULTIMODAL_KINDS = frozenset({"default", "yarn"})
MULTIMODAL_ROWS = 4
UNPLANNED_KEYS = ("rope_dim", "use_fope")
FACTOR_KEYS = ("partial_rotary_factor", "rotary_pct", "rotary_emb_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Rotary embedding of a model; `kind` is "" when it has none.

    `positions` is the length vLLM builds it for, `original_positions` the trained one that scaling starts from. A
    `multimodal` one rotates by time, height and width, and keeps four rows for each position: until the release
    `one_row_since`, where there is one. `dtype` is that of the table where it is not the model's, `base` tells tables
    apart that differ in nothing else.
    """

    kind: str = ""
    rotary_dim: int = 0
    positions: int = 0
    factor: float | None = None
    original_positions: int | None = None
    multimodal: bool = False
    one_row_since: Version | None = None
    dtype: str = ""
    base: float = 0.0

    def table_rows(self, version: Version | None = None) -> int:
        """Rows of the cosine and sine table in a release of vLLM (None: the newest).

        Source: vLLM `layers.rotary_embedding` (`LinearScalingRotaryEmbedding`, `YaRNScalingRotaryEmbedding`,
        `Phi3LongRoPEScaledRotaryEmbedding`, `MRotaryEmbedding` and the plain one), 0.32.
        """
        since = self.one_row_since
        one_row = not self.multimodal or (since is not None and (version is None or version >= since))
        return self._rows() * (1 if one_row else MULTIMODAL_ROWS)

    def _rows(self) -> int:
        if self.kind == "linear":
            return math.ceil(self.positions * (self.factor or 1.0))
        if self.kind == "yarn":
            return math.ceil((self.original_positions or self.positions) * (self.factor or 1.0))
        if self.kind == "longrope":
            return (self.original_positions or 0) + self.positions
        return self.positions

    def table_bytes(self, dtype: str, version: Version | None = None) -> int:
        """Bytes of vLLM's own table: a row of `rotary_dim` cosines and sines for each position."""
        return self.table_rows(version) * self.rotary_dim * DTYPE_BYTES[self.dtype or dtype] if self.kind else 0

    @property
    def frequencies_bytes(self) -> int:
        """Bytes of the two fp32 frequency vectors that the Transformers modelling backend keeps instead."""
        return 2 * (self.rotary_dim // 2) * 4 if self.kind else 0


def read_rope(
    keys: ConfigKeys,
    *,
    head_dim: int,
    rotary_dim: int | None = None,
    positions: int | None = None,
    scaling: Mapping[str, object] | None = None,
) -> Rope:
    """Return how a model rotates queries and keys.

    `rotary_dim` and `positions` where the family has its own rule for them, `scaling` where the config has several.
    Raises Unknown for a scaling whose table is not derived here, BadInput for one that is malformed. Source:
    transformers `RotaryEmbeddingConfigMixin.standardize_rope_params`, vLLM `transformers_utils.config`.
    """
    if scaling is None:
        scaling = stated_scaling(keys)
    kind = _kind(scaling)
    return Rope(
        kind=kind,
        rotary_dim=_rotary_dim(keys, scaling, head_dim) if rotary_dim is None else rotary_dim,
        positions=positions or keys.size("max_position_embeddings") or NO_KEY_POSITIONS,
        factor=_factor(scaling, kind),
        original_positions=_original_positions(keys, scaling, kind),
        multimodal=bool(scaling.get("mrope_section")) and kind in MULTIMODAL_KINDS,
    )


def stated_scaling(keys: ConfigKeys) -> Mapping[str, object]:
    """Return the one scaling that the config or its class states; several, by layer type, are Unknown."""
    scaling = keys.mapping("rope_parameters") or keys.mapping("rope_scaling") or {}
    default = keys.defaults.get("rope_scaling")
    if not scaling and isinstance(default, Mapping):
        return default
    for key in UNPLANNED_KEYS:
        if scaling.get(key):
            raise _unknown(key)
    if any(isinstance(value, Mapping) for value in scaling.values()):
        raise _unknown("rope_parameters by layer type")
    return scaling


def _kind(scaling: Mapping[str, object]) -> str:
    stated = scaling.get("rope_type", scaling.get("type")) or "default"
    kind = LEGACY_KINDS.get(str(stated), str(stated))
    if kind not in KINDS:
        raise _unknown(kind)
    return kind


def _factor(scaling: Mapping[str, object], kind: str) -> float | None:
    if scaling.get("factor") is not None:
        return finite("rope_scaling.factor", scaling["factor"])
    if kind in ("linear", "yarn") or (kind == "dynamic" and "alpha" not in scaling):
        raise BadInput(
            field="rope_scaling.factor",
            message=f"RoPE scaling of type {kind} states no factor.",
            fix="add factor to rope_scaling in config.json",
        )
    return None


def _original_positions(keys: ConfigKeys, scaling: Mapping[str, object], kind: str) -> int | None:
    """A key beside the scaling wins over one inside it (as Phi-3 states it)."""
    if kind not in KEEPS_ORIGINAL_LENGTH:
        return None
    outside = keys.size("original_max_position_embeddings")
    inside = scaling.get("original_max_position_embeddings")
    if outside is not None:
        return outside
    if inside is not None:
        return int(finite("rope_scaling.original_max_position_embeddings", inside))
    return keys.size("max_position_embeddings") or NO_KEY_POSITIONS


def _rotary_dim(keys: ConfigKeys, scaling: Mapping[str, object], head_dim: int) -> int:
    inside = scaling.get("partial_rotary_factor")
    stated = [value for name in FACTOR_KEYS if (value := keys.number(name)) is not None]
    factor = finite("partial_rotary_factor", inside) if inside is not None else stated[0] if stated else 1.0
    if not 0 < factor <= 1:
        raise BadInput(
            field="partial_rotary_factor",
            message=f"partial_rotary_factor is {factor}; it must be above 0 and at most 1.",
            fix="correct the value in config.json",
        )
    return int(head_dim * factor)


def _unknown(what: str) -> Unknown:
    return Unknown(
        field="rope_scaling",
        message=f"unknown architecture: RoPE of kind {what!r} is not planned yet.",
        fix=f"plan a model whose rope_type is one of {', '.join(sorted(KINDS))}",
    )
