"""Real vLLM as judge of the weights: the same bytes on every rank, or the same refusal."""

import pytest

from tests.engine.judged import CANNOT_DIVIDE, ours, vllms
from tests.engine.shapes import COMPUTES_WHILE_BUILT, FAMILIES, LLAMA_31_8B, LLAMA_32_1B, OPT_125M, PUBLISHED, QWEN2_7B

TENSOR_PARALLEL_SIZES = (1, 2, 4, 8, 16)


@pytest.mark.parametrize("tp", TENSOR_PARALLEL_SIZES)
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_take_the_bytes_vllm_creates_or_are_refused_alike(engine, name, tp):
    assert ours(PUBLISHED[name], tp=tp) == vllms(engine, PUBLISHED[name], tp=tp)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_planned_family_is_built_as_planned(engine, name):
    config, device = FAMILIES[name], "cpu" if name in COMPUTES_WHILE_BUILT else "meta"
    assert ours(config, tp=4) == vllms(engine, config, tp=4, rank=3, device=device)


@pytest.mark.parametrize("stage", [0, 1, 2])
@pytest.mark.parametrize("name", ["llama", "gpt2", "smollm3", "granite with biases, tied", "cohere", "gpt_bigcode"])
def test_every_pipeline_stage_holds_its_layers_and_its_ends(engine, name, stage):
    place = {"tp": 2, "pp": 3, "rank": 2 * stage}
    assert ours(FAMILIES[name], **place) == vllms(engine, FAMILIES[name], **place)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_a_remainder_of_layers_is_split_over_stages_as_vllm_does(engine, stage):
    config = {**LLAMA_32_1B, "num_hidden_layers": 15}
    assert ours(config, pp=4, rank=stage) == vllms(engine, config, pp=4, rank=stage)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", ["llama", "gemma", "apertus", "seed_oss"])
def test_another_dtype_resizes_weights_and_tables_alike(engine, name, dtype):
    config, device = FAMILIES[name], "cpu" if name in COMPUTES_WHILE_BUILT else "meta"
    assert ours(config, dtype=dtype) == vllms(engine, config, dtype=dtype, device=device)


MULTI_HEAD = {
    **LLAMA_31_8B,
    "hidden_size": 3072,
    "intermediate_size": 12288,
    "num_attention_heads": 24,
    "num_key_value_heads": 24,
}


@pytest.mark.parametrize(
    ("config", "tp", "kind"),
    [
        (LLAMA_31_8B, 3, "heads_tp"),
        ({**QWEN2_7B, "hidden_size": 3072, "num_attention_heads": 24, "num_key_value_heads": 6}, 4, CANNOT_DIVIDE),
        ({**LLAMA_31_8B, "intermediate_size": 14340}, 8, CANNOT_DIVIDE),
        ({**OPT_125M, "ffn_dim": 3074}, 4, CANNOT_DIVIDE),
        ({**MULTI_HEAD, "vocab_size": 32000}, 12, CANNOT_DIVIDE),
    ],
)
def test_what_does_not_divide_is_refused_alike(engine, config, tp, kind):
    assert ours(config, tp=tp) == {"refused": kind} == vllms(engine, config, tp=tp)


OMITTED = {
    "mistral": ("num_key_value_heads", "intermediate_size", "vocab_size"),
    "qwen3": ("head_dim", "intermediate_size", "vocab_size", "max_position_embeddings"),
    "opt": ("vocab_size", "max_position_embeddings"),
    "gpt2": ("vocab_size", "n_positions", "n_layer"),
    "gemma": ("head_dim", "vocab_size", "intermediate_size"),
    "starcoder2": ("num_key_value_heads", "vocab_size", "use_bias"),
    "glm4": ("head_dim", "num_key_value_heads", "attention_bias"),
    "ernie4_5": ("head_dim", "num_key_value_heads", "intermediate_size"),
    "nemotron": ("intermediate_size", "max_position_embeddings"),
    "falcon, multi-query": ("vocab_size", "max_position_embeddings", "multi_query"),
}


@pytest.mark.parametrize("name", OMITTED)
def test_omitted_keys_take_the_defaults_that_vllm_takes(engine, name):
    config = {key: value for key, value in FAMILIES[name].items() if key not in OMITTED[name]}
    assert ours(config) == vllms(engine, config)
