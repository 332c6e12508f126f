"""Each layer's cache is vLLM 0.32's own, for the catalog's models on GPUs of several kinds (`golden_layers`)."""

import json
from functools import cache
from pathlib import Path

import pytest

from planner.core.errors import BadInput, Unknown
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
NOT_PLANNED = {
    "Alibaba-NLP/gte-Qwen2-7B-instruct": "is_causal",
    "Qwen/Qwen3-32B-FP8-Static-PerTensor": "quantization_config",
}
# Models with kernels of their own: no backend is chosen for them.
WITHOUT_A_CHOICE = {"CompressorBackend", "TRITON_ATTN_DIFFKV"}
REFUSED_FOR_THE_CACHE = ("No valid attention backend", "Selected backend", "fp8_ds_mla layout only")
QUESTIONS = [
    pytest.param(capability, name, settings, answer, id=f"{capability} {name} {json.dumps(settings)}")
    for capability, rows in ANSWERS.items()
    for name, settings, answer in rows
    if name not in ASKED_OF_ANOTHER_MODEL
]
ANSWERED = [case for case in QUESTIONS if "refused" not in case.values[3]]
SIZED = [case for case in ANSWERED if case.values[1] not in NOT_PLANNED]
REFUSED = [case for case in QUESTIONS if any(why in case.values[3].get("refused", "") for why in REFUSED_FOR_THE_CACHE)]


def backends_of(answer):
    """Return the names of the attention backends that vLLM chose."""
    return {cache["backend"] for cache in answer["caches"] if cache["kind"] != "MambaSpec"}


CHOSEN = [case for case in SIZED if not backends_of(case.values[3]) & WITHOUT_A_CHOICE]


@cache
def model(name):
    """Return a model of the catalog."""
    return model_from_config(catalog_config(name), name=name)


@pytest.mark.parametrize(("capability", "name", "settings", "answer"), SIZED)
def test_each_layer_caches_what_it_does_in_vllm(capability, name, settings, answer):
    assert planned(model(name), cuda(capability), settings) == answered(answer)


@pytest.mark.parametrize(("name", "key"), NOT_PLANNED.items())
def test_a_model_that_is_not_planned_is_unknown_by_the_key_that_decides_it(name, key):
    with pytest.raises(Unknown) as fault:
        model(name)
    assert fault.value.field == key


@pytest.mark.parametrize(("capability", "name", "settings", "answer"), CHOSEN)
def test_the_attention_backends_are_vllms(capability, name, settings, answer):
    assert backends(model(name), cuda(capability), settings) == backends_of(answer)


@pytest.mark.parametrize(("capability", "name", "settings", "answer"), REFUSED)
def test_what_no_backend_of_vllm_serves_is_refused(capability, name, settings, answer):
    with pytest.raises(BadInput):
        planned(model(name), cuda(capability), settings)


def test_nearly_every_model_that_vllm_builds_is_judged():
    names = {case.values[1] for case in ANSWERED}
    assert sum(_is_planned(name) for name in names) >= 0.95 * len(names)


def _is_planned(name):
    try:
        model(name)
    except Unknown:
        return False
    return True
