"""Sliding windows of dense decoders: one that holds for every layer, or one by the type of each layer.

Source: vLLM 0.32 `EngineArgs.create_engine_config` (CacheConfig.sliding_window), `layers.attention.attention`, the
model classes; transformers 5.19 for the layer types that a class fills in.
"""

from functools import partial

from planner.core.config_keys import ConfigKeys
from planner.core.family import Family, LayerTypes
from planner.core.layer_types import FULL, SLIDING, full_every, layer_types, texts
from planner.core.model_scope import unknown
from planner.core.tower import numbers

NOPE_INTERVAL = 4
WINDOWED_FROM_LAYER = 28


def layer_windows(keys: ConfigKeys, family: Family) -> tuple[int | None, ...]:
    """Return the window of each layer, None where it attends to everything.

    Raises Unknown for windows in some layers of a class that vLLM refuses to build so.
    """
    layers = keys.required_size("num_hidden_layers")
    texts(keys, "layer_types")
    window = _stated_window(keys, family)
    if window is None:
        return (None,) * layers
    kinds = _kinds(keys, family, layers)
    if set(kinds) <= {SLIDING}:
        return (window,) * layers
    if family.layer_types is LayerTypes.QWEN and SLIDING in kinds and _stops_before(keys, layers):
        raise unknown("max_window_layers", "vLLM refuses this family with windows in some layers only.")
    if not family.reads_layer_types:
        return (None,) * layers
    return tuple(window if kind == SLIDING else None for kind in kinds)


def _stated_window(keys: ConfigKeys, family: Family) -> int | None:
    if family.window_flag and not keys.flag(family.window_flag):
        return None
    stated = keys.value("sliding_window")
    if isinstance(stated, list | tuple):
        return next((size for size in numbers(_without_nulls(keys, stated), "sliding_window")), None)
    if stated in (None, 0):
        return None
    return keys.required_size("sliding_window") + int(bool(family.window_grew))


def _without_nulls(keys: ConfigKeys, stated: list[object] | tuple[object, ...]) -> ConfigKeys:
    return ConfigKeys({"sliding_window": [size for size in stated if size is not None]}, {}, keys.defaults)


def _kinds(keys: ConfigKeys, family: Family, layers: int) -> tuple[str, ...]:
    """The type of each layer; none where neither the config nor its class knows types."""
    windows = keys.value("sliding_window")
    if isinstance(windows, list | tuple) and windows:
        return tuple(FULL if windows[index % len(windows)] is None else SLIDING for index in range(layers))
    if family.layer_types is LayerTypes.STATED and keys.value("layer_types") is None:
        return ()
    return layer_types(keys, partial(_usual_kind, keys, family.layer_types))


def _usual_kind(keys: ConfigKeys, rule: LayerTypes, index: int) -> str:
    if rule is LayerTypes.QWEN:
        first = keys.number("max_window_layers")
        return SLIDING if index >= (WINDOWED_FROM_LAYER if first is None else first) else FULL
    if rule is LayerTypes.NOPE:
        return FULL if _rotates(keys, index) else SLIDING
    return _of_pattern(keys.value("sliding_window_pattern"), index)


def _of_pattern(pattern: object, index: int) -> str:
    """`LLLG` spells a pattern out; a number has full attention in every so many layers."""
    if isinstance(pattern, str) and pattern:
        return FULL if pattern[index % len(pattern)] == "G" else SLIDING
    return full_every(pattern if isinstance(pattern, int) and pattern > 0 else NOPE_INTERVAL)(index)


def _rotates(keys: ConfigKeys, index: int) -> bool:
    stated = numbers(keys, "no_rope_layers")
    if stated:
        return index < len(stated) and bool(stated[index])
    return (index + 1) % (keys.size("no_rope_layer_interval") or NOPE_INTERVAL) != 0


def _stops_before(keys: ConfigKeys, layers: int) -> bool:
    stated = keys.number("max_window_layers")
    return (WINDOWED_FROM_LAYER if stated is None else stated) != layers
