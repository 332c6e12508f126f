"""A model as its config.json describes it: what its weights and its KV cache are made of."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.core.class_defaults import CLASS_DEFAULTS
from planner.core.config_keys import ConfigKeys
from planner.core.context_length import ContextLength, read_context_length
from planner.core.engine import Version
from planner.core.errors import BadInput, PlanningError, Unknown
from planner.core.family import Family
from planner.core.model_facts import ModelFacts as ModelFacts
from planner.core.model_facts import stated_facts
from planner.core.model_scope import language_model, planned_family, require_planned
from planner.core.model_shape import read_shape
from planner.core.rope import Rope, read_rope
from planner.core.weight_blocks import EndBlock, LayerBlock, end_blocks, layer_blocks

DTYPES = {"bfloat16": "bfloat16", "float16": "float16", "half": "float16", "float32": "float32", "float": "float32"}
DTYPE_WHEN_ABSENT = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A dense decoder-only model with full attention, ready to be planned.

    `dtype` is the checkpoint's. `derived_max_model_len` is vLLM's limit in its newest release (None: no key states
    one); `context` gives it for any release. `first` and `last` are the releases that serve it ("": every planned
    one), `transformers_since` the one from which the Transformers modelling backend does.
    """

    name: str
    architecture: str
    model_type: str
    dtype: str
    num_layers: int
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    num_attention_heads: int
    num_kv_heads: int
    head_dim: int
    derived_max_model_len: int | None
    derived_max_model_len_key: str
    tie_word_embeddings: bool
    context: ContextLength
    rope: Rope
    layer_blocks: tuple[LayerBlock, ...]
    end_blocks: tuple[EndBlock, ...]
    both_ends_everywhere: bool
    layer_scalars: int
    layer_scalar_buffers: int
    model_scalar_buffers: int
    mask_positions: int
    transformers_since: Version | None
    first: Version | None
    last: Version | None
    supports_pp: bool = True

    @property
    def parameters(self) -> int:
        """Return the parameters of the checkpoint: a tied head counts once, the vocabulary unpadded."""
        layer = sum(
            block.elements(1, self.num_kv_heads) for block in self.layer_blocks if block.served != "transformers"
        )
        ends = sum(
            block.replicated + (0 if block.tied else block.vocabulary_width * self.vocab_size)
            for block in self.end_blocks
            if block.served != "transformers"
        )
        return self.num_layers * (layer + self.layer_scalars) + ends

    def is_served_by_transformers(self, version: Version | None = None) -> bool:
        """Whether that release (None: the newest) builds the model through the Transformers modelling backend."""
        since = self.transformers_since
        return since is not None and (version is None or version >= since)


def model_from_config(config: Mapping[str, object], *, name: str) -> Model:
    """Return the model that a Hugging Face config.json describes.

    Keys of a nested `text_config` count; omitted ones take the defaults of the configuration class. Raises Unknown
    (with the deciding key) for whatever is not a planned dense decoder, BadInput for a key of the wrong type. Source:
    vLLM 0.32 `model_executor.models` and `transformers_utils.model_arch_config_convertor`, transformers 5.19.
    """
    if not isinstance(config, Mapping):
        raise BadInput(field="config", message="config.json is no object.", fix="give the model's config.json")
    language = language_model(config)
    architecture, family = planned_family(language)
    keys = ConfigKeys(language, family.names, CLASS_DEFAULTS.get(family.model_type, {}))
    require_planned(keys, family)
    return _model(keys, family, name=name, architecture=architecture)


def model_facts(config: Mapping[str, object]) -> ModelFacts:
    """Return what a config.json of any architecture states, and why it cannot be planned if so; never raises."""
    try:
        return stated_facts(config, parameters=model_from_config(config, name="").parameters, unplanned="")
    except PlanningError as error:
        stated = config if isinstance(config, Mapping) else {}
        return stated_facts(stated, parameters=None, unplanned=f"{error.field}: {error.message}")


def _model(keys: ConfigKeys, family: Family, *, name: str, architecture: str) -> Model:
    shape = read_shape(keys, family)
    rope = read_rope(keys, family, shape.head_dim)
    context = read_context_length(keys, rope)
    tied = keys.flag("tie_word_embeddings")
    return Model(
        name=name,
        architecture=architecture,
        model_type=keys.text("model_type") or family.model_type,
        dtype=read_dtype(keys),
        num_layers=keys.required_size("num_hidden_layers"),
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        vocab_size=shape.vocab_size,
        num_attention_heads=shape.num_attention_heads,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        derived_max_model_len=context.limit(),
        derived_max_model_len_key=context.key,
        tie_word_embeddings=tied,
        context=context,
        rope=rope,
        layer_blocks=layer_blocks(shape, family),
        end_blocks=end_blocks(shape, family, tied=tied),
        both_ends_everywhere=family.both_ends_everywhere,
        layer_scalars=family.layer_scalars,
        layer_scalar_buffers=family.layer_scalar_buffers,
        model_scalar_buffers=family.model_scalar_buffers,
        mask_positions=(keys.size("max_position_embeddings") or 0) if family.mask_buffer else 0,
        transformers_since=_version(family.transformers_since),
        first=_version(family.first),
        last=_version(family.last),
    )


def _version(text: str) -> Version | None:
    return Version.parse(text) if text else None


def read_dtype(keys: ConfigKeys) -> str:
    """Return the dtype of the checkpoint; float32 when it is not stated, as vLLM assumes."""
    stated = keys.text("dtype") or keys.text("torch_dtype") or DTYPE_WHEN_ABSENT
    dtype = DTYPES.get(stated.removeprefix("torch."))
    if dtype is None:
        raise Unknown(
            field="torch_dtype",
            message=f"unknown architecture: weights of dtype {stated} are not planned yet.",
            fix="plan a checkpoint in bfloat16, float16 or float32",
        )
    return dtype
