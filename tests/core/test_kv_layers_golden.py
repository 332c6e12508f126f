"""Each layer's cache is vLLM 0.32's own, for the catalog's models on GPUs of several kinds (`golden_layers`)."""

import json
from functools import cache
from pathlib import Path

import pytest

from planner.core.errors import BadInput, PlanningError, Unknown
from planner.core.model import model_from_config
from tests.core.layer_questions import answered, backends, cuda, planned
from tests.engine.golden_layers import FIXTURE, catalog_config

ANSWERS = json.loads(Path(FIXTURE).read_text())
# What the stand-in for the checkpoint lacks, so that vLLM reads another model than the published one.
ASKED_OF_ANOTHER_MODEL = {
    "XiaomiMiMo/MiMo-7B-Base": "its own config class drops the window",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8": "the abridged quantisation names no producer",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4": "the abridged quantisation names no producer",
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8": "the abridged quantisation names no producer",
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4": "the abridged quantisation names no producer",
}
WITHOUT_A_CHOICE = {"CompressorBackend", "TRITON_ATTN_DIFFKV"}
REFUSED_FOR_THE_CACHE = ("No valid attention backend", "Selected backend", "fp8_ds_mla layout only")
QUESTIONS = [
    pytest.param(capability, name, settings, answer, id=f"{capability} {name} {json.dumps(settings)}")
    for capability, rows in ANSWERS.items()
    for name, settings, answer in rows
    if name not in ASKED_OF_ANOTHER_MODEL
]
SIZED = [case for case in QUESTIONS if "refused" not in case.values[3]]
REFUSED = [case for case in QUESTIONS if any(why in case.values[3].get("refused", "") for why in REFUSED_FOR_THE_CACHE)]


@cache
def model(name):
    """Return a model of the catalog."""
    return model_from_config(catalog_config(name), name=name)


@pytest.mark.parametrize(("capability", "name", "settings", "answer"), SIZED)
def test_each_layer_caches_what_it_does_in_vllm(capability, name, settings, answer):
    try:
        caches = planned(model(name), cuda(capability), settings)
    except Unknown as fault:
        pytest.skip(f"not planned: {fault.message}")
    assert caches == answered(answer)


@pytest.mark.parametrize(("capability", "name", "settings", "answer"), SIZED)
def test_the_attention_backends_are_vllms(capability, name, settings, answer):
    theirs = {cache["backend"] for cache in answer["caches"] if cache["kind"] != "MambaSpec"}
    if theirs & WITHOUT_A_CHOICE:
        pytest.skip("the model brings its own kernels")
    try:
        assert backends(model(name), cuda(capability), settings) == theirs
    except Unknown as fault:
        pytest.skip(f"not planned: {fault.message}")


@pytest.mark.parametrize(("capability", "name", "settings", "answer"), REFUSED)
def test_what_no_backend_of_vllm_serves_is_refused(capability, name, settings, answer):
    with pytest.raises(PlanningError) as fault:
        planned(model(name), cuda(capability), settings)
    if fault.value.field == "architectures":
        pytest.skip(f"not planned: {fault.value.message}")
    assert isinstance(fault.value, BadInput)


def test_nearly_every_model_that_vllm_builds_is_judged():
    names = {case.values[1] for case in SIZED}
    assert sum(_is_planned(name) for name in names) >= 0.95 * len(names)


def _is_planned(name):
    try:
        model(name)
    except Unknown:
        return False
    return True
