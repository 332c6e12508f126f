"""Each layer's cache is vLLM 0.32's own, for the catalog's models on GPUs of several kinds (`golden_layers`)."""

import json
from functools import cache
from pathlib import Path

import pytest

from planner import catalog
from planner.core.defaults import resolve
from planner.core.engine import Version
from planner.core.errors import BadInput, PlanningError, Unknown
from planner.core.hardware import Gpu
from planner.core.kv_layers import kv_layers
from planner.core.kv_spec import SpecKind
from planner.core.layout import Layout
from planner.core.model import model_from_config
from planner.readers.command import read_fields
from tests.engine.golden_layers import FIXTURE, catalog_config

FACTS = catalog.engine_facts("0.32.0")
ANSWERS = json.loads(Path(FIXTURE).read_text())
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
# What the stand-in for the checkpoint lacks, so that vLLM reads another model than the published one.
ASKED_OF_ANOTHER_MODEL = {
    "XiaomiMiMo/MiMo-7B-Base": "its own config class drops the window",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8": "the abridged quantisation names no producer",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4": "the abridged quantisation names no producer",
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8": "the abridged quantisation names no producer",
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4": "the abridged quantisation names no producer",
}
REFUSED_FOR_THE_CACHE = ("No valid attention backend", "Selected backend", "fp8_ds_mla layout only")
QUESTIONS = [
    pytest.param(capability, name, settings, answer, id=f"{capability} {name} {json.dumps(settings)}")
    for capability, rows in ANSWERS.items()
    for name, settings, answer in rows
    if name not in ASKED_OF_ANOTHER_MODEL
]
SIZED = [case for case in QUESTIONS if "refused" not in case.values[3]]
REFUSED = [case for case in QUESTIONS if any(why in case.values[3].get("refused", "") for why in REFUSED_FOR_THE_CACHE)]


def planned(capability, name, settings):
    """Return our named specs of the stage that the question asks about."""
    rank, flags = settings.get("rank", 0), dict(settings.get("flags", {}))
    flags |= {key: value for key, value in settings.items() if key not in ("rank", "flags")}
    flags = {key: _written(value) for key, value in flags.items()}
    gpu = _gpu(capability)
    model = _model(name)
    args = read_fields(flags, version=Version(0, 32, 0), model=name)
    resolved = resolve(args, model=model, gpu=gpu, facts=FACTS)
    layout = Layout(
        tensor_parallel_size=resolved.tensor_parallel_size,
        pipeline_parallel_size=resolved.pipeline_parallel_size,
        data_parallel_size=1,
        layers_per_stage=resolved.layers_per_stage,
    )
    return kv_layers(model, resolved, gpu, FACTS, layout)[layout.ranks[rank].pp_stage]


@cache
def _model(name):
    return model_from_config(catalog_config(name), name=name)


def _gpu(capability):
    major, minor = capability.split(".")
    size = 80 << 30
    return Gpu(
        slug="emulated",
        name="Emulated",
        device_type="cuda",
        total_bytes=size,
        total_low_bytes=size,
        total_high_bytes=size,
        compute_capability=(int(major), int(minor)),
    )


def _written(value):
    if isinstance(value, list):
        return " ".join(value)
    return json.dumps(value) if isinstance(value, dict) else value


def in_our_words(cache):
    """Return what decides the bytes of one of vLLM's specs."""
    common = {"kind": KINDS[cache["kind"]], "page": cache["page"], "block_size": cache["block_size"]}
    if cache["kind"] == "MambaSpec":
        return common | {
            "mode": cache.get("mamba_cache_mode", "none"),
            "drafted": cache.get("num_speculative_blocks", 0),
            "checkpoints": cache.get("num_prefill_checkpoint_blocks", 0),
        }
    heads = {name: cache.get(name) for name in HEADS} | {"head_size_v": cache.get("head_size_v", 0)}
    return common | heads | {"content": cache.get("state_content_bytes"), "element": WIDTHS[cache["dtype"]]}


def in_the_same_words(spec):
    """Return the same of one of ours."""
    common = {"kind": spec.kind, "page": spec.page_bytes, "block_size": spec.block_size}
    if spec.kind is SpecKind.MAMBA:
        return common | {
            "mode": spec.mamba_cache_mode,
            "drafted": spec.num_speculative_blocks,
            "checkpoints": spec.num_prefill_checkpoint_blocks,
        }
    heads = {name: getattr(spec, name) for name in HEADS}
    return common | heads | {"content": spec.state_content_bytes, "element": WIDTHS[spec.dtype]}


@pytest.mark.parametrize(("capability", "name", "settings", "answer"), SIZED)
def test_each_layer_caches_what_it_does_in_vllm(capability, name, settings, answer):
    theirs = [in_our_words(answer["caches"][index]) for count, index in answer["runs"] for _ in range(count)]
    try:
        specs = planned(capability, name, settings)
    except Unknown as fault:
        pytest.skip(f"not planned: {fault.message}")
    assert [in_the_same_words(spec) for _, spec in specs] == theirs


@pytest.mark.parametrize(("capability", "name", "settings", "answer"), REFUSED)
def test_what_no_backend_of_vllm_serves_is_refused(capability, name, settings, answer):
    with pytest.raises(PlanningError) as fault:
        planned(capability, name, settings)
    if fault.value.field == "architectures":
        pytest.skip(f"not planned: {fault.value.message}")
    assert isinstance(fault.value, BadInput)


def test_nearly_every_model_that_vllm_builds_is_judged():
    names = {case.values[1] for case in SIZED}
    assert sum(_is_planned(name) for name in names) >= 0.95 * len(names)


def _is_planned(name):
    try:
        _model(name)
    except Unknown:
        return False
    return True
