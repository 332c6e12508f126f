"""What towers are made of: the encoders that see or hear, and what ties one to its language model."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from planner.core.class_defaults import CLASS_DEFAULTS
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Tower
from planner.core.errors import BadInput, Unknown
from planner.core.modules import Linear, Module, Shard, Split, Tensor
from planner.core.tower_defaults import TOWER_DEFAULTS

TOWER_KEYS = frozenset({"vision_config", "audio_config", "encoder_config", "visual", "vision_tower", "mm_vision_tower"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A class of vLLM that sets towers beside a language model which another architecture reads.

    `language` is the architecture of the language model; `languages` gives it by the `model_type` of `text_config`
    where several may be inside (`language` then is the one of a config that states none). `towers` reads the towers,
    given the keys and the language model, which `adapts` changes where it differs inside. `prefix` is vLLM's name of
    the list of layers; `left_out_since` is the first release in which a limit of no items leaves its towers out.
    `whole_items` are the tokens of the largest item that the model attends to in both directions (None: it does not).
    """

    model_type: str
    language: str
    towers: Callable[[ConfigKeys, Decoder], tuple[Tower, ...]]
    languages: Mapping[str, str] = field(default_factory=dict)
    adapts: Callable[[Decoder], Decoder] = lambda decoder: decoder
    whole_items: Callable[[ConfigKeys], int | None] = lambda keys: None
    prefix: str = "language_model.model.layers"
    hf_to_vllm: tuple[tuple[str, str], ...] = ()
    first: str = ""
    last: str = ""
    left_out_since: str = "0.15"
    checked: bool = True
    supports_pp: bool = True


def wrapped(wrappers: Mapping[str, Wrapper], languages: Mapping[str, Architecture]) -> dict[str, Architecture]:
    """Return the architectures of the wrappers whose language model can be read."""
    return {
        name: _architecture(wrapper, languages) for name, wrapper in wrappers.items() if wrapper.language in languages
    }


def _architecture(wrapper: Wrapper, languages: Mapping[str, Architecture]) -> Architecture:
    def build(keys: ConfigKeys) -> Decoder:
        language = _language(wrapper, keys, languages)
        decoder = wrapper.adapts(language.build(language_keys(keys, language)))
        return replace(
            decoder,
            towers=_towers(wrapper, keys, decoder),
            layer_prefix=wrapper.prefix,
            hf_to_vllm=wrapper.hf_to_vllm,
            supports_pp=decoder.supports_pp and wrapper.supports_pp,
            whole_item_tokens=wrapper.whole_items(keys),
        )

    return Architecture(
        model_type=wrapper.model_type,
        build=build,
        names=languages[wrapper.language].names,
        first=wrapper.first,
        last=wrapper.last,
        checked=wrapper.checked,
    )


def _towers(wrapper: Wrapper, keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    towers = wrapper.towers(keys, decoder)
    return tuple(replace(tower, left_out_since=wrapper.left_out_since) for tower in towers)


def _language(wrapper: Wrapper, keys: ConfigKeys, languages: Mapping[str, Architecture]) -> Architecture:
    """vLLM builds the class that it has for the `model_type` of `text_config`."""
    inner = keys.text("model_type") or ""
    name = wrapper.languages.get(inner, wrapper.language)
    free = bool(wrapper.languages) and inner not in ("", wrapper.model_type, *wrapper.languages)
    if free or name not in languages:
        raise Unknown(
            field="text_config.model_type",
            message=f"unknown architecture: a {inner} inside {wrapper.model_type} is not planned yet.",
            fix="plan a model of another family",
        )
    return languages[name]


def language_keys(keys: ConfigKeys, language: Architecture) -> ConfigKeys:
    """Return the keys of the language model alone: without its towers, under the names and defaults of its class."""
    config = {name: value for name, value in keys.config.items() if name not in TOWER_KEYS}
    defaults = CLASS_DEFAULTS.get(keys.text("model_type") or "") or keys.defaults
    return ConfigKeys(config, language.names, defaults)


def tower_keys(keys: ConfigKeys, name: str, model_type: str = "") -> ConfigKeys:
    """Return the keys of a tower's own object, over the defaults of its class; its absence is Unknown.

    vLLM would build a tower of the class's defaults for a config that states none, but no published checkpoint with a
    tower leaves it out: such a config is a part of one.
    """
    stated = keys.config.get(name)
    if stated is None:
        raise Unknown(
            field=name,
            message=f"unknown architecture: {name} is not stated, so the tower's size is not known.",
            fix=f"give the whole config.json, with its {name}",
        )
    if not isinstance(stated, Mapping):
        raise BadInput(field=name, message=f"{name} is no object.", fix="correct it in config.json")
    kind = str(stated.get("model_type") or model_type)
    return ConfigKeys(stated, {}, TOWER_DEFAULTS.get(kind) or TOWER_DEFAULTS.get(model_type, {}))


def numbers(keys: ConfigKeys, name: str) -> tuple[int, ...]:
    """Return a list of whole numbers; one number counts as a list of one, nothing as an empty one."""
    value = keys.value(name)
    items = value if isinstance(value, list | tuple) else [] if value is None else [value]
    if any(isinstance(item, bool) or not isinstance(item, int) for item in items):
        raise keys.wrong(name, value, "a list of whole numbers")
    return tuple(items)


def layer_norm(name: str, width: int) -> Tensor:
    """Return a norm with weight and bias."""
    return Tensor(name=name, elements=2 * width)


def rms_norm(name: str, width: int) -> Tensor:
    """Return a norm of one vector."""
    return Tensor(name=name, elements=width)


def table(name: str, rows: int, width: int) -> Tensor:
    """Return a table that every rank holds whole (positions, a class token)."""
    return Tensor(name=name, elements=rows * width)


def convolution(name: str, inputs: int, outputs: int, kernel: int, *, bias: bool = True) -> Tensor:
    """Return a convolution of `kernel` taps, whole on every rank."""
    return Tensor(name=name, elements=outputs * (inputs * kernel + int(bias)))


def frequencies(name: str, rotary_dim: int, *, copies: int = 1) -> Tensor:
    """Return the fp32 frequencies of a rotary embedding that keeps no table; transformers' classes keep them twice."""
    return Tensor(name=name, elements=copies * (rotary_dim // 2), dtype="float32", is_buffer=True)


def rotary_table(name: str, rows: int, rotary_dim: int) -> Tensor:
    """Return vLLM's table of cosines and sines."""
    return Tensor(name=f"{name}.cos_sin_cache", elements=rows * rotary_dim, is_buffer=True)


def up(name: str, inputs: int, outputs: int, *, bias: bool = True, may_quantise: bool = True) -> Linear:
    """Return a column-parallel layer."""
    shards = (Shard(name=name.rpartition(".")[2], outputs=outputs),)
    return Linear(name=name, inputs=inputs, shards=shards, bias=bias, may_quantise=may_quantise)


def down(name: str, inputs: int, outputs: int, *, bias: bool = True, may_quantise: bool = True) -> Linear:
    """Return a row-parallel layer."""
    shards = (Shard(name=name.rpartition(".")[2], outputs=outputs),)
    return Linear(name=name, inputs=inputs, shards=shards, split=Split.ROW, bias=bias, may_quantise=may_quantise)


def whole(name: str, inputs: int, outputs: int, *, bias: bool = True, may_quantise: bool = True) -> Linear:
    """Return a layer that every rank holds whole."""
    shards = (Shard(name=name.rpartition(".")[2], outputs=outputs),)
    return Linear(name=name, inputs=inputs, shards=shards, split=Split.REPLICATED, bias=bias, may_quantise=may_quantise)


def merged_qkv(name: str, inputs: int, width: int, *, bias: bool = True, may_quantise: bool = True) -> Linear:
    """Return queries, keys and values of equal width in one layer (vLLM `QKVParallelLinear`)."""
    shards = tuple(Shard(name=part, outputs=width) for part in ("q_proj", "k_proj", "v_proj"))
    return Linear(name=name, inputs=inputs, shards=shards, bias=bias, may_quantise=may_quantise)


def gate_and_up(name: str, inputs: int, width: int, *, bias: bool = False) -> Linear:
    """Return gate and up merged."""
    shards = tuple(Shard(name=part, outputs=width) for part in ("gate_proj", "up_proj"))
    return Linear(name=name, inputs=inputs, shards=shards, bias=bias)


def blocks(prefix: str, count: int, block: Callable[[str], Iterator[Module]]) -> Iterator[Module]:
    """Return the modules of `count` equal blocks, each under its own name."""
    for index in range(count):
        yield from block(f"{prefix}.{index}")
