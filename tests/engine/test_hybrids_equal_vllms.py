"""Real vLLM as judge of windows, layers of different shapes and recurrent states: the same bytes and caches."""

import pytest

from tests.engine.judged import CANNOT_DIVIDE, ours, vllms
from tests.engine.shapes_hybrid import COMPUTES_WHILE_BUILT, HYBRIDS, STATES


@pytest.mark.parametrize("name", HYBRIDS)
def test_every_family_is_built_and_cached_as_planned(engine, name):
    config, device = HYBRIDS[name], "cpu" if name in COMPUTES_WHILE_BUILT else "meta"
    assert ours(config, tp=4) == vllms(engine, config, tp=4, rank=3, device=device)


@pytest.mark.parametrize("stage", [0, 1, 2])
@pytest.mark.parametrize("name", ["gemma3", "gemma4", "qwen3_next", "nemotron_h, experts", "lfm2", "nemotron-nas"])
def test_every_pipeline_stage_holds_its_own_kinds_of_layers(engine, name, stage):
    place = {"tp": 2, "pp": 3, "rank": 2 * stage}
    assert ours(HYBRIDS[name], **place) == vllms(engine, HYBRIDS[name], **place)


def test_groups_of_a_state_are_not_repeated_unless_there_is_one(engine):
    several, one = STATES["nemotron_h"], STATES["falcon_h1"]
    assert ours(several, tp=8) == {"refused": CANNOT_DIVIDE} == vllms(engine, several, tp=8)
    assert ours(one, tp=8) == vllms(engine, one, tp=8)


def test_borrowed_keys_must_be_on_the_same_stage(engine):
    config, place = HYBRIDS["gemma4, inputs of each layer, borrowed keys"], {"tp": 1, "pp": 3, "rank": 2}
    assert ours(config, **place) == {"refused": "pp_unsupported"} == vllms(engine, config, **place)


OMITTED = {
    "gemma2": ("head_dim", "num_key_value_heads", "sliding_window", "vocab_size"),
    "gemma3": ("head_dim", "num_key_value_heads", "intermediate_size", "sliding_window"),
    "gemma3n": ("head_dim", "vocab_size_per_layer_input", "hidden_size_per_layer_input", "laurel_rank"),
    "gemma4": ("head_dim", "global_head_dim", "sliding_window", "vocab_size"),
    "cohere2": ("num_key_value_heads", "sliding_window", "intermediate_size"),
    "olmo3": ("num_key_value_heads", "sliding_window", "intermediate_size"),
    "qwen3_next": ("head_dim", "linear_num_key_heads", "linear_value_head_dim", "num_experts", "intermediate_size"),
    "qwen3_5": ("head_dim", "linear_num_value_heads", "linear_key_head_dim", "num_key_value_heads"),
    "qwen3_5_moe": ("head_dim", "num_experts", "moe_intermediate_size", "shared_expert_intermediate_size"),
    "olmo_hybrid": ("linear_num_value_heads", "linear_key_head_dim", "linear_num_key_heads", "intermediate_size"),
    "mamba": ("state_size", "conv_kernel", "expand", "vocab_size"),
    "mamba2": ("state_size", "vocab_size", "use_conv_bias"),
    "jamba": ("attn_layer_period", "attn_layer_offset", "num_key_value_heads", "num_experts"),
    "falcon_h1": ("mamba_n_groups", "mamba_d_state", "num_key_value_heads", "intermediate_size"),
    "granite 4": ("mamba_n_groups", "mamba_d_state", "shared_intermediate_size", "num_local_experts"),
    "nemotron_h, experts": ("head_dim", "n_routed_experts", "moe_intermediate_size", "n_groups", "num_key_value_heads"),
    "lfm2": ("block_auto_adjust_ff_dim", "conv_L_cache", "num_key_value_heads"),
    "lfm2_moe": ("num_experts", "moe_intermediate_size", "num_dense_layers", "intermediate_size"),
}


@pytest.mark.parametrize("name", OMITTED)
def test_omitted_keys_take_the_defaults_that_vllm_takes(engine, name):
    config = {key: value for key, value in HYBRIDS[name].items() if key not in OMITTED[name]}
    assert ours(config) == vllms(engine, config)
