"""Real vLLM as judge of models with experts or latent attention: bytes and caches of a rank, or the same refusal."""

import pytest

from tests.engine.judged import ours, vllms
from tests.engine.shapes_moe import MIXTURES

FIRST_AND_LAST = {"tp": 2, "pp": 3, "rank": 5}


@pytest.mark.parametrize("name", MIXTURES)
def test_every_mixture_is_built_and_cached_as_planned(engine, name):
    assert ours(MIXTURES[name], tp=4) == vllms(engine, MIXTURES[name], tp=4, rank=3)


@pytest.mark.parametrize("name", ["mixtral", "deepseek_v3", "llama4", "mimo_v2_flash", "cohere2_moe"])
def test_the_last_pipeline_stage_holds_its_layers_and_its_ends(engine, name):
    assert ours(MIXTURES[name], **FIRST_AND_LAST) == vllms(engine, MIXTURES[name], **FIRST_AND_LAST)


OMITTED = {
    "mixtral": ("num_local_experts", "num_key_value_heads", "vocab_size"),
    "qwen2_moe": ("num_experts", "shared_expert_intermediate_size", "intermediate_size"),
    "gpt_oss": ("num_local_experts", "vocab_size", "layer_types"),
    "glm4_moe": ("n_routed_experts", "moe_intermediate_size", "vocab_size"),
    "deepseek_v3": ("q_lora_rank", "kv_lora_rank", "n_routed_experts", "vocab_size"),
    "llama4": ("interleave_moe_layer_step", "no_rope_layers", "attention_chunk_size"),
    "ernie4_5_moe": ("moe_num_experts", "tie_word_embeddings"),
}


@pytest.mark.parametrize("name", OMITTED)
def test_omitted_keys_take_the_defaults_that_vllm_takes(engine, name):
    config = {key: value for key, value in MIXTURES[name].items() if key not in OMITTED[name]}
    assert ours(config) == vllms(engine, config)
