"""Each layer of a model gets the scheme that its checkpoint, or the command, gives it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from planner.core.cache_layer import LatentCache
from planner.core.decoder import Decoder, Layer
from planner.core.modules import Experts, Linear, Module, Table, Tensor
from planner.core.quantization.names import LayerName
from planner.core.quantization.recipe import Recipe
from planner.core.scheme import Scheme

KV_SCALES = "self_attn.attn.checkpoint_scales"
HEAD = "lm_head"


@dataclass(slots=True)
class _Layers:
    """Layers with schemes made so far, so that equal ones stay one object."""

    recipe: Recipe
    prefix: str
    made: dict[tuple[int, tuple[Scheme | None, ...]], Layer] = field(default_factory=dict)
    plain: dict[int, Layer] = field(default_factory=dict)

    def with_schemes(self, layer: Layer, number: int) -> Layer:
        if not self.recipe.tells_layers_apart and id(layer) in self.plain:
            return self.plain[id(layer)]
        schemes = tuple(
            _scheme(module, self.recipe, f"{self.prefix}.{number}.{module.name}") for module in layer.modules
        )
        key = (id(layer), schemes)
        if key not in self.made:
            self.made[key] = self._made(layer, schemes)
        self.plain[id(layer)] = self.made[key]
        return self.made[key]

    def _made(self, layer: Layer, schemes: tuple[Scheme | None, ...]) -> Layer:
        modules = tuple(_stored(m, scheme) for m, scheme in zip(layer.modules, schemes, strict=True))
        return replace(layer, modules=(*modules, *_kv_scales(layer, self.recipe)))


def with_schemes(decoder: Decoder, recipe: Recipe) -> Decoder:
    """Return the decoder with the scheme of each layer, expert, head and tower."""
    layers = _Layers(recipe=recipe, prefix=decoder.layer_prefix)
    outer = decoder.layer_prefix.removesuffix("layers")
    head = outer.removesuffix("model.")
    ends = replace(
        decoder.ends,
        first=_ends(decoder.ends.first, recipe, outer),
        last=_ends(decoder.ends.last, recipe, head),
        every=_ends(decoder.ends.every, recipe, outer),
    )
    towers = tuple(replace(t, modules=_ends(t.modules, recipe, "")) for t in decoder.towers)
    return replace(
        decoder,
        layers=tuple(
            layers.with_schemes(layer, number) for number, layer in enumerate(decoder.layers, decoder.first_layer)
        ),
        ends=ends,
        towers=towers,
    )


def name_map(pairs: Iterable[tuple[str, str]]) -> "dict[str, str]":
    """Return the pairs (checkpoint's prefix, vLLM's prefix) as a mapping, in order."""
    return dict(pairs)


def mapped_by(pairs: Mapping[str, str], name: str) -> str:
    """Return vLLM's name for a checkpoint's: every prefix that fits is replaced, one after the other."""
    for old, new in pairs.items():
        if name.startswith(old):
            name = new + name[len(old) :]
    return name


def _ends(modules: tuple[Module, ...], recipe: Recipe, prefix: str) -> tuple[Module, ...]:
    return tuple(_stored(module, _scheme(module, recipe, f"{prefix}{module.name}")) for module in modules)


def _scheme(module: Module, recipe: Recipe, full_name: str) -> Scheme | None:
    match module:
        case Linear(may_quantise=True):
            shards = tuple(shard.name for shard in module.shards)
            return recipe.scheme_of(LayerName(prefix=full_name, shards=shards))
        case Experts(may_quantise=True):
            return recipe.scheme_of(LayerName(prefix=full_name, kind="experts"))
        case Table() if not module.tied and module.width > 1:
            kind = "head" if module.name.endswith(HEAD) else "embedding"
            return recipe.scheme_of(LayerName(prefix=full_name, kind=kind))
    return None


def _stored(module: Module, scheme: Scheme | None) -> Module:
    if scheme is None or isinstance(module, Tensor):
        return module
    return replace(module, scheme=scheme)


def _kv_scales(layer: Layer, recipe: Recipe) -> Iterable[Tensor]:
    """Placeholders that attention layers have for a checkpoint's KV scales, until loading ends."""
    has_scales = any(isinstance(m, Tensor) and m.is_buffer and m.name.endswith(".scales") for m in layer.modules)
    latent = any(isinstance(cache, LatentCache) for cache in layer.caches)
    if not has_scales or not recipe.kv_scales or (latent and not recipe.latent_kv_scales):
        return
    if recipe.kv_scales == "scales":
        yield Tensor(name=KV_SCALES, elements=4, stays=False)
    else:
        yield Tensor(name=KV_SCALES, elements=3, dtype="float32", stays=False)
        yield Tensor(name=f"{KV_SCALES}.zero_points", elements=3, stays=False)
