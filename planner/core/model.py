"""A model as its config.json describes it: what its weights and its KV cache are made of."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.core.architectures import ARCHITECTURES, MODEL_TYPES
from planner.core.class_defaults import CLASS_DEFAULTS
from planner.core.config_keys import ConfigKeys
from planner.core.context_length import ContextLength, read_context_length
from planner.core.decoder import Architecture, Decoder, Layer, with_shared_layers
from planner.core.engine import Version
from planner.core.errors import BadInput, PlanningError, Unknown
from planner.core.model_facts import ModelFacts as ModelFacts
from planner.core.model_facts import stated_facts
from planner.core.model_scope import language_model, stated_architecture, unknown_architecture
from planner.core.modules import Table, parameters_of
from planner.core.predictors import predictor_of
from planner.core.quantization import Quantization, quantised, read_quantization
from planner.core.rope import Rope
from planner.core.traits import Traits, traits_of

DTYPES = {"bfloat16": "bfloat16", "float16": "float16", "half": "float16", "float32": "float32", "float": "float32"}
DTYPE_WHEN_ABSENT = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model ready to be planned: its decoder, and what config.json says beside it.

    The modules of a quantised checkpoint carry its schemes; `quantization` says how it came by them. `predictor` is the
    heads that the checkpoint brings to draft with.

    `dtype` is the checkpoint's. `derived_max_model_len` is vLLM's limit in its newest release (None: no key states
    one); `context` gives it for any release. `first` and `last` are the releases that serve it (None: every planned
    one), `transformers_since` the one from which the Transformers modelling backend does.
    """

    name: str
    architecture: str
    model_type: str
    dtype: str
    decoder: Decoder
    derived_max_model_len: int | None
    derived_max_model_len_key: str
    context: ContextLength
    transformers_since: Version | None
    first: Version | None
    last: Version | None
    traits: Traits
    quantization: Quantization | None = None
    predictor: Decoder | None = None

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The decoder layers in order; equal layers are the same object."""
        return self.decoder.layers

    @property
    def num_layers(self) -> int:
        """How many decoder layers there are."""
        return len(self.decoder.layers)

    @property
    def hidden_size(self) -> int:
        """Width of the hidden states."""
        return self.decoder.hidden_size

    @property
    def intermediate_size(self) -> int:
        """Width of the dense MLP, or of the experts of a token."""
        return self.decoder.intermediate_size

    @property
    def vocab_size(self) -> int:
        """Rows of the vocabulary, unpadded."""
        return self.decoder.vocab_size

    @property
    def num_attention_heads(self) -> int:
        """Query heads."""
        return self.decoder.num_attention_heads

    @property
    def num_kv_heads(self) -> int:
        """Key and value heads."""
        return self.decoder.num_kv_heads

    @property
    def head_dim(self) -> int:
        """Elements of a head."""
        return self.decoder.head_dim

    @property
    def tie_word_embeddings(self) -> bool:
        """Whether the head is the embedding."""
        return self.decoder.tie_word_embeddings

    @property
    def supports_pp(self) -> bool:
        """Whether vLLM splits it over pipeline stages."""
        return self.decoder.supports_pp

    @property
    def rope(self) -> Rope:
        """The rotary embedding whose scaling counts for the longest context; one without a kind where there is none."""
        return self.decoder.context_rope or next(iter(self.decoder.ropes), Rope())

    @property
    def parameters(self) -> int:
        """Parameters of the checkpoint: a tied head counts once, the vocabulary unpadded."""
        ends = self.decoder.ends
        towers = (module for tower in self.decoder.towers for module in tower.modules)
        layers = (module for layer in self.layers for module in layer.modules)
        return sum(parameters_of(module) for module in (*ends.first, *ends.last, *ends.every, *towers, *layers))

    @property
    def predictor_parameters(self) -> int:
        """Parameters of the heads to draft with, beside the tables that they share with the model."""
        heads = self.predictor
        if heads is None:
            return 0
        layers = (module for layer in heads.layers for module in layer.modules)
        beside = (module for module in heads.ends.every if not isinstance(module, Table))
        return sum(parameters_of(module) for module in (*layers, *beside))

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
    name_in_config = stated_architecture(language) or MODEL_TYPES.get(str(config.get("model_type")), "")
    architecture = ARCHITECTURES.get(name_in_config)
    if architecture is None:
        raise unknown_architecture(language, name_in_config)
    keys = ConfigKeys(language, architecture.names, CLASS_DEFAULTS.get(architecture.model_type, {}))
    return _model(keys, architecture, name=name, architecture_name=name_in_config)


def model_facts(config: Mapping[str, object]) -> ModelFacts:
    """Return what a config.json of any architecture states, and why it cannot be planned if so; never raises."""
    try:
        return stated_facts(config, parameters=model_from_config(config, name="").parameters, unplanned="")
    except PlanningError as error:
        stated = config if isinstance(config, Mapping) else {}
        return stated_facts(stated, parameters=None, unplanned=f"{error.field}: {error.message}")


def _model(keys: ConfigKeys, architecture: Architecture, *, name: str, architecture_name: str) -> Model:
    decoder = with_shared_layers(architecture.build(keys))
    predictor = predictor_of(architecture_name, keys, decoder)
    quantization = read_quantization(keys.config)
    if quantization is not None:
        decoder = quantised(decoder, quantization)
        predictor = quantised(predictor, quantization) if predictor else None
    rope = decoder.context_rope or next(iter(decoder.ropes), Rope())
    context = read_context_length(keys, rope)
    return Model(
        name=name,
        architecture=architecture_name,
        model_type=keys.text("model_type") or architecture.model_type,
        dtype=read_dtype(keys),
        decoder=decoder,
        derived_max_model_len=context.limit(),
        derived_max_model_len_key=context.key,
        context=context,
        transformers_since=_version(architecture.transformers_since),
        first=_version(architecture.first),
        last=_version(architecture.last),
        traits=traits_of(decoder),
        quantization=quantization,
        predictor=predictor,
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
