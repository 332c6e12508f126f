"""What the reader of one architecture returns: its layers in order, and what stands at both ends and beside them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from planner.core.cache_layer import Cache
from planner.core.config_keys import ConfigKeys
from planner.core.modules import Module
from planner.core.rope import Rope


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One decoder layer: its modules, and what it caches (nothing, one cache, or several).

    `ropes` are the rotary tables it reads, where not every layer of the model reads the same ones.
    """

    modules: tuple[Module, ...]
    caches: tuple[Cache, ...]
    ropes: tuple[Rope, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Modules outside the layers: on the first pipeline stage, on the last, or on every one."""

    first: tuple[Module, ...] = ()
    last: tuple[Module, ...] = ()
    every: tuple[Module, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """An encoder beside the language model: `modality` is "image" or "audio" (video shares the image tower).

    `modules` are under their full vLLM names (`visual.blocks.0.attn.qkv`); `on_every_stage` is False where vLLM builds
    it on the first stage only; from the release `left_out_since` on, a limit of no items for everything that it is
    `limited_by` leaves it out ("": never; what nothing limits stays in).
    `max_tokens_per_item` is what one item may cost the encoder and the prompt (None where
    the config does not decide it), each token of `patches_per_token` patches; `hidden_size` and `intermediate_size`
    drive its activation. `num_heads` must be
    divisible by TP (0: nothing asks) unless `whole_if_indivisible`; from `whole_since` on, `--mm-encoder-tp-mode data`
    keeps it whole on every rank ("": it is split whatever the mode). `underived` names the key of a tower whose size
    is not known: the model can be planned without it.
    """

    modality: str
    modules: tuple[Module, ...]
    on_every_stage: bool = True
    limited_by: tuple[str, ...] = ("image", "video")
    left_out_since: str = ""
    max_tokens_per_item: int | None = None
    patches_per_token: int = 4
    hidden_size: int = 0
    intermediate_size: int = 0
    num_heads: int = 0
    whole_if_indivisible: bool = False
    whole_since: str = ""
    underived: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """A language model as vLLM builds it, with the towers beside it.

    `layer_prefix` is vLLM's name of the list of layers (`model.layers`, `language_model.model.layers`), which the
    ignore lists of quantised checkpoints are matched against, and `first_layer` the number of the first of them;
    `hf_to_vllm` are (checkpoint prefix, vLLM prefix) pairs. `intermediate_size` is the width of the dense MLP (of the
    experts of a token where no layer is dense). `ropes` are the distinct rotary tables; the scaling of `context_rope`
    (None: the first of them) counts for the longest context.
    One that `drafts_only` speaks for another model and is no model by itself.
    `whole_item_tokens` are those of the largest image or clip that the model attends to in both directions at once.
    """

    hidden_size: int
    intermediate_size: int
    vocab_size: int
    num_attention_heads: int
    num_kv_heads: int
    head_dim: int
    layers: tuple[Layer, ...]
    ends: Ends
    ropes: tuple[Rope, ...] = ()
    context_rope: Rope | None = None
    tie_word_embeddings: bool = False
    towers: tuple[Tower, ...] = ()
    layer_prefix: str = "model.layers"
    first_layer: int = 0
    hf_to_vllm: tuple[tuple[str, str], ...] = ()
    both_ends_everywhere: bool = False
    supports_pp: bool = True
    repeats_kv_heads: bool = True
    experts_on_every_stage: bool = False
    is_encoder_decoder: bool = False
    whole_item_tokens: int | None = None
    drafts_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """How one entry of `architectures` is read: `build` gets the keys of the language model.

    `keys.config` keeps the outer config's keys where the nested `text_config` does not hide them, and the towers' own
    objects (`vision_config`, `audio_config`). `names` are the config.json spellings of canonical keys; `model_type`
    names the configuration class whose defaults fill omitted keys. `first` and `last` are the vLLM releases that serve
    it ("": every planned one), `transformers_since` the one from which the Transformers modelling backend does.
    `checked` is False where no release of vLLM could be asked and the reading rests on its source alone.
    """

    model_type: str
    build: Callable[[ConfigKeys], Decoder]
    names: Mapping[str, str] = field(default_factory=dict)
    first: str = ""
    last: str = ""
    transformers_since: str = ""
    checked: bool = True


def with_shared_layers(decoder: Decoder) -> Decoder:
    """Return the decoder with equal layers as one object, so that whoever sums layers may count identities."""
    seen: dict[Layer, Layer] = {}
    return replace(decoder, layers=tuple(seen.setdefault(layer, layer) for layer in decoder.layers))
