"""Real vLLM on its CPU platform as judge of what each layer caches: kinds, block sizes and pages, in order."""

import pytest

from planner.core.model import model_from_config
from tests.core.layer_questions import answered, planned
from tests.core.questions import LAPTOP
from tests.engine.golden_layers import shortened
from tests.engine.shapes import FAMILIES
from tests.engine.shapes_hybrid import HYBRIDS
from tests.engine.shapes_moe import MIXTURES

COMPUTES_WHILE_BUILT = ("bloom", "apertus", "apertus, windows in turn")
NOT_JUDGED = {
    **dict.fromkeys(COMPUTES_WHILE_BUILT, "its model needs real tensors"),
    "zamba2": "its attention is registered before any layer: the same caches, in another order",
    "zamba2, one block, rotated, adapters, biases": "the same",
}
SHAPES = {name: config for name, config in (FAMILIES | HYBRIDS | MIXTURES).items() if name not in NOT_JUDGED}
SPLIT = ("gemma3", "gemma4", "cohere2", "qwen3_next", "nemotron_h", "nemotron_h, experts", "jamba", "falcon_h1", "lfm2")
SPREAD = {"tensor_parallel_size": 2, "pipeline_parallel_size": 2, "rank": 2}
FLAGS = {
    "a block of its own": {"block_size": 64},
    "prefixes not kept": {"enable_prefix_caching": False},
    "states in float32": {"mamba_ssm_cache_dtype": "float32"},
    "convolutions in float32": {"mamba_cache_dtype": "float32"},
    "8 bits": {"kv_cache_dtype": "fp8"},
}


def agree(engine, config, **settings):
    """Compare one rank's caches, where vLLM's CPU platform serves the model at all."""
    theirs = shortened(engine.ask("layers", config=config, **settings))
    if "refused" in theirs:
        pytest.skip(theirs["refused"])
    assert planned(model_from_config(config, name="judged"), LAPTOP, settings) == answered(theirs)


@pytest.mark.parametrize("name", SHAPES)
def test_each_layer_of_a_family_caches_what_it_does_in_vllm(engine, name):
    agree(engine, SHAPES[name])


@pytest.mark.parametrize("name", SPLIT)
def test_each_rank_caches_its_share(engine, name):
    agree(engine, HYBRIDS[name], **SPREAD)


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("name", ["gemma3", "qwen3_next", "nemotron_h", "jamba", "falcon_h1", "lfm2"])
def test_flags_change_what_they_change_in_vllm(engine, name, flags):
    agree(engine, HYBRIDS[name], flags=flags)
