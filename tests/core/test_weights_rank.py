"""What a rank loads: sums shown here, published parameter counts, and laws that hold for every shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.core.engine import Version
from planner.core.layout import Layout, pipeline_split
from planner.core.model import model_from_config
from planner.core.weights import padded_vocabulary, rank_weights, weight_refusals
from tests.engine.shapes import FAMILIES, LLAMA_3_70B, LLAMA_31_8B, LLAMA_32_1B, PUBLISHED

GIB = 1 << 30


def layout(model, *, tp=1, pp=1, stages=None):
    return Layout(
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=1,
        layers_per_stage=stages or pipeline_split(model.num_layers, pp),
    )


def weights(config, *, tp=1, pp=1, stage=0, dtype="bfloat16", version=None):
    model = model_from_config(config, name="tried")
    return rank_weights(model, layout=layout(model, tp=tp, pp=pp), pp_stage=stage, dtype=dtype, version=version)


# Totals that the safetensors index of each repository states (huggingface.co, "Model size").
PUBLISHED_PARAMETERS = {
    "Llama-3.1-8B": 8_030_261_248,
    "Llama-3-70B": 70_553_706_496,
    "Llama-3.2-1B": 1_235_814_400,
    "Qwen2-7B": 7_615_616_512,
    "Qwen2-0.5B": 494_032_768,
    "Qwen3-8B": 8_190_735_360,
    "Qwen3-0.6B": 596_049_920,
    "Mistral-7B-v0.3": 7_248_023_552,
    "opt-125m": 125_239_296,
    "opt-350m": 331_196_416,
    "opt-1.3b": 1_315_758_080,
}


@pytest.mark.parametrize("name", PUBLISHED_PARAMETERS)
def test_parameters_come_to_the_published_count(name):
    assert model_from_config(PUBLISHED[name], name=name).parameters == PUBLISHED_PARAMETERS[name]


def test_llama_70b_on_four_ranks_by_hand():
    """A layer: q and o 2 x 8192^2, 2 KV heads of 2 x 128 x 8192, MLP 3 x 8192 x 28672; two ends 128256 x 8192."""
    layer = (2 * 8192**2 + 3 * 8192 * 28672) // 4 + 2 * 2 * 128 * 8192 + 2 * 8192
    elements = 80 * layer + 2 * 128256 // 4 * 8192 + 8192
    rank = weights(LLAMA_3_70B, tp=4)
    assert rank.parameter_bytes == 2 * elements == 35_278_831_616
    assert rank.parameter_bytes / GIB == pytest.approx(32.856, abs=0.001)


def test_kv_heads_are_replicated_when_tp_exceeds_them():
    """From TP 8 to 16 the 8 KV heads no longer halve: a rank keeps one, 2 x 128 x 4096 elements a layer."""
    per_head = 32 * 2 * 128 * 4096 * 2
    eight, sixteen = (dict(weights(LLAMA_31_8B, tp=tp).parts)["attention"] for tp in (8, 16))
    assert (eight - per_head) // 2 + per_head == sixteen


def test_the_vocabulary_is_padded_to_sixty_four_rows():
    assert (padded_vocabulary(50257), padded_vocabulary(50304), padded_vocabulary(1)) == (50304, 50304, 64)
    assert dict(weights({**LLAMA_31_8B, "vocab_size": 128001}, tp=2).parts)["embedding"] == 128064 // 2 * 4096 * 2


def test_a_tied_head_costs_nothing_beside_the_embedding():
    parts = dict(weights(LLAMA_32_1B).parts)
    assert "head" not in parts
    assert parts["embedding"] == 128256 * 2048 * 2


def test_a_tied_model_on_two_stages_holds_the_embedding_twice():
    first, last = (dict(weights(LLAMA_32_1B, pp=2, stage=stage).parts)["embedding"] for stage in (0, 1))
    assert first == last == 128256 * 2048 * 2


def test_the_embedding_is_on_the_first_stage_and_the_head_on_the_last():
    names = [{name for name, _ in weights(LLAMA_31_8B, pp=3, stage=stage).parts} for stage in range(3)]
    assert ["embedding" in parts for parts in names] == [True, False, False]
    assert ["head" in parts for parts in names] == ["final norm" in parts for parts in names] == [False, False, True]


def test_older_families_build_both_ends_on_every_stage():
    """vLLM 0.32 creates GPT-2's embeddings on all pipeline ranks (`models/gpt2.py`)."""
    assert "embedding" in dict(weights(FAMILIES["gpt2"], pp=3, stage=1).parts)


@pytest.mark.parametrize(("name", "minor"), [("gpt_neox", 32), ("phi", 32), ("olmo2", 26), ("starcoder2", 25)])
def test_some_families_did_so_until_the_transformers_backend_took_them(name, minor):
    """Asked of vLLM 0.31, 0.25 and 0.24: their middle stage holds the embedding, that of the next release does not."""
    before, after = (
        dict(weights(FAMILIES[name], tp=2, pp=3, stage=1, version=Version(0, release)).parts)
        for release in (minor - 1, minor)
    )
    assert ("embedding" in before, "embedding" in after) == (True, False)


def test_the_rope_table_is_whole_on_every_rank():
    """131,072 positions x 128 cosines and sines x 2 B, and four fp32 scales for each of 32 layers."""
    assert weights(LLAMA_31_8B, tp=8).buffer_bytes == 131072 * 128 * 2 + 32 * 16


def test_linear_scaling_stretches_the_table_and_yarn_starts_from_the_original_length():
    linear = FAMILIES["llama, long by linear scaling"]
    yarn = FAMILIES["qwen2, long by yarn"]
    assert dict(weights(linear).parts)["RoPE table"] == int(768 * 2.5) * 64 * 2
    assert dict(weights(yarn).parts)["RoPE table"] == 192 * 4 * 64 * 2


def test_the_transformers_backend_keeps_frequencies_instead_of_a_table():
    """vLLM 0.32 serves Seed-OSS that way, 0.31 did not: 2 x 64 fp32 frequencies, or 768 x 128 bf16."""
    old, new = (
        dict(weights(FAMILIES["seed_oss"], version=Version(0, minor)).parts)["RoPE table"] for minor in (31, 32)
    )
    assert (old, new) == (768 * 128 * 2, 2 * 64 * 4)


def test_the_formula_has_the_numbers_of_this_rank():
    text = weights(LLAMA_31_8B, tp=16).formula
    for part in ("32 layers", "33,554,432/16", "1 KV head x 1,048,576", "embedding 128,256 x 4,096/16", "x 2 B"):
        assert part in text


@pytest.mark.parametrize(
    ("tp", "keys", "rule"),
    [
        (3, {}, "heads_tp"),
        (4, {"num_attention_heads": 24, "num_key_value_heads": 6, "hidden_size": 3072}, "kvheads_tp"),
        (8, {"intermediate_size": 14340}, "dim_tp"),
        (32, {"vocab_size": 128256, "intermediate_size": 14336 + 16}, "dim_tp"),
    ],
)
def test_what_does_not_divide_is_refused_with_a_remedy(tp, keys, rule):
    model = model_from_config({**LLAMA_31_8B, **keys}, name="tried")
    reason = weight_refusals(model, layout(model, tp=tp))[0]
    assert (reason.rule, reason.field, reason.level) == (rule, "tensor_parallel_size", "refuse")
    assert reason.remedy


SHAPES = st.fixed_dictionaries(
    {
        "num_hidden_layers": st.integers(1, 40),
        "num_attention_heads": st.sampled_from([16, 32, 64]),
        "num_key_value_heads": st.sampled_from([1, 2, 4, 8, 16]),
        "head_dim": st.sampled_from([64, 96, 128]),
        "hidden_size": st.sampled_from([1024, 2048, 4096]),
        "intermediate_size": st.integers(1, 200).map(lambda n: 64 * n),
        "vocab_size": st.integers(1, 300_000),
        "tie_word_embeddings": st.booleans(),
        "attention_bias": st.booleans(),
        "mlp_bias": st.booleans(),
    }
)


@given(SHAPES)
def test_doubling_tp_never_raises_the_bytes_of_a_rank(keys):
    config = {**LLAMA_31_8B, **keys}
    sizes = [weights(config, tp=tp).parameter_bytes for tp in (1, 2, 4, 8, 16)]
    assert sizes == sorted(sizes, reverse=True)


@given(SHAPES, st.integers(1, 6))
def test_stages_sum_to_the_whole_and_a_copy_of_a_tied_embedding(keys, pp):
    config = {**LLAMA_31_8B, **keys}
    whole = weights(config).parameter_bytes
    split = sum(weights(config, pp=pp, stage=stage).parameter_bytes for stage in range(pp))
    copied = padded_vocabulary(keys["vocab_size"]) * keys["hidden_size"] * 2
    assert split - whole == (copied if keys["tie_word_embeddings"] and pp > 1 else 0)


@given(SHAPES, st.sampled_from([1, 2, 4, 8, 16]))
def test_the_parts_sum_to_parameters_and_buffers(keys, tp):
    rank = weights({**LLAMA_31_8B, **keys}, tp=tp)
    assert sum(size for _, size in rank.parts) == rank.parameter_bytes + rank.buffer_bytes


@given(SHAPES)
def test_one_rank_holds_the_model_and_the_padding_of_its_vocabulary(keys):
    model = model_from_config({**LLAMA_31_8B, **keys}, name="tried")
    ends = 1 if keys["tie_word_embeddings"] else 2
    padding = ends * (padded_vocabulary(model.vocab_size) - model.vocab_size) * model.hidden_size
    assert weights({**LLAMA_31_8B, **keys}).parameter_bytes == 2 * (model.parameters + padding)
