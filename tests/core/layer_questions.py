"""Questions about what each layer caches, as vLLM's judges are asked them, and both answers in the same words."""

import json

from planner import catalog
from planner.core.defaults import resolve
from planner.core.engine import Version
from planner.core.hardware import Gpu
from planner.core.kv_layers import cache_setting, kv_layers
from planner.core.kv_spec import SpecKind
from planner.core.layout import Layout
from planner.core.units import GIB
from planner.readers.command import read_fields

FACTS = catalog.engine_facts("0.32.0")
KINDS = {
    "FullAttentionSpec": SpecKind.FULL,
    "MLAAttentionSpec": SpecKind.MLA,
    "SlidingWindowSpec": SpecKind.SLIDING_WINDOW,
    "SlidingWindowMLASpec": SpecKind.SLIDING_WINDOW_MLA,
    "ChunkedLocalAttentionSpec": SpecKind.CHUNKED_LOCAL,
    "MambaSpec": SpecKind.MAMBA,
    "CrossAttentionSpec": SpecKind.CROSS,
}
HEADS = ("num_kv_heads", "head_size", "head_size_v", "sliding_window", "attention_chunk_size")
WIDTHS = {"uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "bfloat16": 2, "float16": 2, "float32": 4}


def cuda(capability):
    """Return a GPU of 80 GiB with this compute capability."""
    major, minor = capability.split(".")
    return Gpu(
        slug="emulated",
        name="Emulated",
        device_type="cuda",
        total_bytes=80 * GIB,
        total_low_bytes=80 * GIB,
        total_high_bytes=80 * GIB,
        compute_capability=(int(major), int(minor)),
    )


def planned(model, gpu, settings):
    """Return our specs of the stage that the question asks about, in the words of the judge's answer."""
    resolved = _resolved(model, gpu, settings)
    layout = Layout(
        tensor_parallel_size=resolved.tensor_parallel_size,
        pipeline_parallel_size=resolved.pipeline_parallel_size,
        data_parallel_size=1,
        layers_per_stage=resolved.layers_per_stage,
    )
    stage = kv_layers(model, resolved, gpu, FACTS, layout)[layout.ranks[settings.get("rank", 0)].pp_stage]
    return [_described(spec) for _, spec in stage]


def backends(model, gpu, settings):
    """Return the names of our attention backends."""
    setting = cache_setting(model, _resolved(model, gpu, settings), gpu, FACTS)
    return {served.backend.name for served in setting.attention_backends()}


def _resolved(model, gpu, settings):
    flags = dict(settings.get("flags", {}))
    flags |= {key: value for key, value in settings.items() if key not in ("rank", "flags")}
    flags = {key: _written(value) for key, value in flags.items()}
    args = read_fields(flags, version=Version(0, 32, 0), model=model.name)
    return resolve(args, model=model, gpu=gpu, facts=FACTS)


def _written(value):
    if isinstance(value, list):
        return " ".join(value)
    return json.dumps(value) if isinstance(value, dict) else value


def _vllms(cache):
    common = {"kind": KINDS[cache["kind"]], "page": cache["page"], "block_size": cache["block_size"]}
    if cache["kind"] == "MambaSpec":
        return common | {
            "mode": cache.get("mamba_cache_mode", "none"),
            "drafted": cache.get("num_speculative_blocks", 0),
            "checkpoints": cache.get("num_prefill_checkpoint_blocks", 0),
        }
    heads = {name: cache.get(name) for name in HEADS} | {"head_size_v": cache.get("head_size_v", 0)}
    return common | heads | {"content": cache.get("state_content_bytes"), "element": WIDTHS[cache["dtype"]]}


def _described(spec):
    common = {"kind": spec.kind, "page": spec.page_bytes, "block_size": spec.block_size}
    if spec.kind is SpecKind.MAMBA:
        return common | {
            "mode": spec.mamba_cache_mode,
            "drafted": spec.num_speculative_blocks,
            "checkpoints": spec.num_prefill_checkpoint_blocks,
        }
    heads = {name: getattr(spec, name) for name in HEADS}
    return common | heads | {"content": spec.state_content_bytes, "element": WIDTHS[spec.dtype]}


def answered(answer):
    """Return what decides the bytes of each of vLLM's specs, from the judge's answer (`golden_layers.shortened`)."""
    return [_vllms(answer["caches"][index]) for count, index in answer["runs"] for _ in range(count)]
