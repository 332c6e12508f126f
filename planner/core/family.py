"""The facts that tell one decoder architecture from another, as far as its weights and its KV cache go."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Fact = bool | str


class QkNorm(StrEnum):
    """How queries and keys are normalised: not, one vector a head size, one a head, or one over all heads."""

    NONE = "none"
    HEAD = "head"
    HEAD_AND_BIAS = "head_and_bias"
    EACH_HEAD = "each_head"
    ALL_HEADS = "all_heads"


class Positions(StrEnum):
    """Where a model takes positions from."""

    ROPE = "rope"
    LEARNED = "learned"
    ALIBI = "alibi"


class KvHeads(StrEnum):
    """Which rule gives the KV heads."""

    GROUPED = "grouped"
    MULTI_HEAD = "multi_head"
    FALCON = "falcon"
    CHATGLM = "chatglm"
    BIGCODE = "bigcode"


class LayerTypes(StrEnum):
    """What a configuration class fills in for `layer_types`: nothing, or a window where one of these rules says so."""

    STATED = "stated"
    QWEN = "from max_window_layers on"
    NOPE = "where positions are not rotated"
    PERIOD = "in all but every fourth layer"


class Norms(StrEnum):
    """The rule of the few families whose norms a layer depend on more than the family."""

    FIXED = "fixed"
    FALCON = "falcon"
    POST_NORM = "post_norm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One architecture as vLLM builds it.

    `names` gives the config.json spelling of canonical names. `norm_vectors` counts the vectors of one norm (weight,
    bias). `both_ends_everywhere`: vLLM's own class builds embedding, final norm and head on every pipeline stage.
    `window_flag` is the key that must be set for a window to count; from the release `window_grew` on, vLLM counts one
    token more in it. `reads_layer_types` tells a class that gives each layer a window of its own from one that knows a
    single one.
    `halves_intermediate`: gate and up are half as wide as the config says; `rotates_at_width` is the one hidden size at
    which positions are rotated (ALiBi otherwise). `checked` is False where the reading rests on vLLM's source alone.
    `transformers_since` is the first release seen to serve it through the Transformers modelling backend, `first` and
    `last` the releases that serve it at all ("" where that is every planned one).
    """

    model_type: str
    names: Mapping[str, str] = field(default_factory=dict)
    gated_mlp: bool = True
    qkv_bias: Fact = False
    o_bias: Fact = False
    mlp_bias: Fact = False
    norms: Norms = Norms.FIXED
    norms_per_layer: int = 2
    norm_vectors: int = 1
    norm_affine: Fact = True
    final_norm: bool = True
    qk_norm: QkNorm = QkNorm.NONE
    qk_norm_if: Fact = True
    kv_heads: KvHeads = KvHeads.GROUPED
    free_head_dim: bool = True
    positions: Positions = Positions.ROPE
    alibi_if: str = ""
    position_offset: int = 0
    rotary_factor: float | None = None
    head_bias: bool = False
    head_bias_in_transformers: bool = True
    embedding_norm: bool = False
    layer_scalars: int = 0
    layer_scalar_buffers: int = 0
    model_scalar_buffers: int = 0
    projected_embedding: bool = False
    mask_buffer: bool = False
    mlp_whole_in_transformers: bool = False
    both_ends_everywhere: bool = False
    window_flag: str = ""
    window_grew: str = ""
    layer_types: LayerTypes = LayerTypes.STATED
    reads_layer_types: bool = False
    scales_full_attention_only: bool = False
    may_have_sinks: bool = False
    transformers_since: str = ""
    first: str = ""
    last: str = ""
    halves_intermediate: bool = False
    rotates_at_width: int | None = None
    checked: bool = True
    unplanned_if: tuple[str, ...] = ()
