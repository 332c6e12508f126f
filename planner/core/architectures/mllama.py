"""Llama 3.2 Vision: a tower whose output some layers of the language model attend to instead of their own tokens.

Source: vLLM 0.10.2 `models.mllama`, the last release that serves it, always with the first engine.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from planner.core.architectures import dense
from planner.core.cache_layer import AttentionCache
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Layer, Tower
from planner.core.modules import Linear, Module, Shard, Table, Tensor, gated_mlp, kv_scales
from planner.core.tower import blocks, down, language_keys, layer_norm, merged_qkv, numbers, table, tower_keys, up

ADDED_ROWS = 8
TILES = 4
_LLAMA = dense.ARCHITECTURES["LlamaForCausalLM"]
_VISION_NAMES = {"num_attention_heads": "attention_heads"}
_VISION_DEFAULTS: Mapping[str, object] = {
    "hidden_size": 1280,
    "intermediate_size": 5120,
    "num_hidden_layers": 32,
    "num_global_layers": 8,
    "num_attention_heads": 16,
    "num_channels": 3,
    "image_size": 448,
    "patch_size": 14,
    "vision_output_dim": 7680,
    "max_num_tiles": TILES,
}


def build(keys: ConfigKeys) -> Decoder:
    """Return a Llama in which the layers of `cross_attention_layers` attend to the image, with its tower."""
    text = language_keys(keys, _LLAMA)
    decoder = _LLAMA.build(ConfigKeys(_without(text.config, "cross_attention_layers"), text.names, text.defaults))
    crossing = frozenset(numbers(keys, "cross_attention_layers"))
    cross = _cross_layer(decoder)
    return replace(
        decoder,
        layers=tuple(cross if index in crossing else layer for index, layer in enumerate(decoder.layers)),
        ends=replace(decoder.ends, first=tuple(_with_added_rows(module) for module in decoder.ends.first)),
        towers=(_tower(keys, decoder),),
        layer_prefix="language_model.model.layers",
        supports_pp=False,
        is_encoder_decoder=True,
    )


def _without(config: Mapping[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in config.items() if key != name}


def _with_added_rows(module: Module) -> Module:
    """The image's token and its kin come after the vocabulary of the head."""
    return replace(module, rows=module.rows + ADDED_ROWS) if isinstance(module, Table) else module


def _cross_layer(decoder: Decoder) -> Layer:
    heads, kv_heads, head_dim = decoder.num_attention_heads, decoder.num_kv_heads, decoder.head_dim
    cache = AttentionCache(num_heads=heads, kv_heads=kv_heads, head_dim=head_dim, kind="cross")
    width = decoder.hidden_size
    kv = tuple(Shard(name=name, outputs=kv_heads * head_dim, units=kv_heads) for name in ("k_proj", "v_proj"))
    modules = (
        up("cross_attn.qkv_proj.q_proj", width, heads * head_dim, bias=False),
        Linear(name="cross_attn.qkv_proj.kv_proj", inputs=width, shards=kv),
        down("cross_attn.o_proj", heads * head_dim, width, bias=False),
        Tensor(name="cross_attn.qk_norm", elements=2 * head_dim),
        kv_scales("cross_attn.attn"),
        *gated_mlp("mlp", width, decoder.intermediate_size),
        Tensor(name="norms", elements=2 * width),
        Tensor(name="gates", elements=2),
    )
    return Layer(modules=modules, caches=(cache,))


def _tower(keys: ConfigKeys, decoder: Decoder) -> Tower:
    stated = tower_keys(keys, "vision_config", "mllama_vision_model")
    vision = ConfigKeys(stated.config, _VISION_NAMES, _VISION_DEFAULTS)
    patches = _patches(vision)
    return Tower(
        modality="image",
        modules=tuple(_modules(vision, decoder.hidden_size)),
        limited_by=("image",),
        max_tokens_per_item=vision.required_size("max_num_tiles") * patches,
        hidden_size=vision.required_size("hidden_size"),
        intermediate_size=vision.required_size("intermediate_size"),
        num_heads=vision.required_size("num_attention_heads"),
    )


def _patches(vision: ConfigKeys) -> int:
    side: int = vision.required_size("image_size") // vision.required_size("patch_size")
    return side**2 + 1


def _modules(vision: ConfigKeys, outputs: int) -> Iterator[Module]:
    width, pixels = vision.required_size("hidden_size"), vision.required_size("patch_size") ** 2
    channels = vision.required_size("num_channels")
    yield up("vision_model.patch_embedding._linear", channels * pixels, width, bias=False, may_quantise=False)
    yield from _positions(vision, width)
    yield from (layer_norm("vision_model.layernorm_pre", width), layer_norm("vision_model.layernorm_post", width))
    for part, count in (("transformer", "num_hidden_layers"), ("global_transformer", "num_global_layers")):
        gates = 2 if part == "global_transformer" else 0
        prefix = f"vision_model.{part}.layers"
        yield from blocks(prefix, vision.required_size(count), partial(_block, vision=vision, gates=gates))
    yield up("multi_modal_projector", vision.required_size("vision_output_dim"), outputs, may_quantise=False)


def _positions(vision: ConfigKeys, width: int) -> Iterator[Tensor]:
    """A token for the class; a place for each patch of each tile in each supported shape, all of them gated."""
    patches, tiles = _patches(vision), vision.required_size("max_num_tiles")
    shapes = vision.value("supported_aspect_ratios")
    kinds = len(shapes) + 1 if isinstance(shapes, list) else 2 * tiles + 1
    yield Tensor(name="vision_model.class_embedding", elements=width)
    yield Tensor(name="vision_model.gated_positional_embedding", elements=1 + patches * width)
    yield table("vision_model.gated_positional_embedding.tile_embedding", kinds, tiles * patches * width)
    for name in ("pre_tile", "post_tile"):
        yield Tensor(name=f"vision_model.{name}_positional_embedding", elements=kinds * tiles * width + 1)


def _block(name: str, vision: ConfigKeys, gates: int) -> Iterator[Module]:
    width, intermediate = vision.required_size("hidden_size"), vision.required_size("intermediate_size")
    yield merged_qkv(f"{name}.self_attn.qkv_proj", width, width, bias=False)
    yield down(f"{name}.self_attn.o_proj", width, width, bias=False)
    yield from (up(f"{name}.mlp.fc1", width, intermediate), down(f"{name}.mlp.fc2", intermediate, width))
    yield from (layer_norm(f"{name}.input_layernorm", width), layer_norm(f"{name}.post_attention_layernorm", width))
    if gates:
        yield Tensor(name=f"{name}.gates", elements=gates)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"MllamaForConditionalGeneration": Architecture(model_type="mllama", build=build, last="0.10.2", checked=False)}
)
