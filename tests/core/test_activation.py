"""Peak activation against published boots, and its parts by hand. Ids are those of planner/catalog/boots.tsv."""

import pytest

from planner.catalog import find_config
from planner.catalog.fitted import fit
from planner.core.activation import (
    activation_bytes,
    activation_formula,
    body_bytes,
    bytes_per_logit,
    mask_bytes,
    pipeline_bytes,
    sampler_binds,
    staying_bytes,
    widest_block_bytes,
)
from planner.core.units import gib
from tests.core.facts import FACTS_032
from tests.core.questions import LLAMA_3_8B
from tests.core.situations import CODE_LLAMA_7B, FACTS_011, GRANITE_31_8B, PHI_4, QWEN_3_32B, QWEN_25_7B, situation

PUBLISHED = [
    ("t025", 1.89, situation()),
    ("t022", 2.21, situation(dtype="float32")),
    ("t029", 1.89, situation(tensor_parallel_size=2)),
    ("t055", 2.21, situation(QWEN_25_7B)),
    ("t036", 1.52, situation(PHI_4)),
    ("t002", 0.77, situation(CODE_LLAMA_7B)),
    ("t015", 0.85, situation(GRANITE_31_8B)),
    ("t028 stage 0", 1.10, situation(pipeline_parallel_size=4)),
    ("t028 stage 1", 1.05, situation(pipeline_parallel_size=4, pp_stage=1)),
    ("t028 stage 3", 2.01, situation(pipeline_parallel_size=4, pp_stage=3)),
    ("t097", 4.76, situation(facts=FACTS_011)),
    ("t099", 5.64, situation(QWEN_3_32B, facts=FACTS_011)),
    ("t100", 5.64, situation(QWEN_3_32B, facts=FACTS_011, tensor_parallel_size=2)),
    ("t003", 1.93, situation(find_config("deepseek-ai/DeepSeek-V2-Lite-Chat"), max_model_len=8192)),
    ("t012", 3.89, situation(find_config("google/gemma-3-4b-it"), max_model_len=8192)),
    ("t011", 3.99, situation(find_config("google/gemma-3-27b-it"), max_model_len=8192)),
    ("t037", 2.03, situation(find_config("mistralai/Mistral-Small-3.1-24B-Instruct-2503"), max_model_len=8192)),
    ("t047", 2.47, situation(find_config("Qwen/Qwen1.5-MoE-A2.7B"))),
    ("t059", 2.68, situation(find_config("Qwen/Qwen3-30B-A3B"), max_model_len=8192)),
]


@pytest.mark.parametrize(("boot", "logged_gib", "asked"), PUBLISHED, ids=[boot for boot, _, _ in PUBLISHED])
def test_a_published_boot_is_met_within_two_hundredths_of_a_gib(boot, logged_gib, asked):
    assert gib(activation_bytes(asked, fit().activation)) == pytest.approx(logged_gib, abs=0.02)


def test_a_small_vocabulary_leaves_the_layers_to_set_the_peak():
    assert sampler_binds(situation(), fit().activation)
    assert not sampler_binds(situation(CODE_LLAMA_7B), fit().activation)


def test_a_gated_mlp_holds_gate_up_and_their_product():
    # Llama-3-8B: 3 x 14336 x 2 B a token at TP 1, a quarter of it at TP 4
    assert widest_block_bytes(situation()) == 8192 * 43_008 * 2
    assert widest_block_bytes(situation(tensor_parallel_size=4)) == 8192 * 10_752 * 2


def test_a_plain_mlp_holds_two_buffers():
    opt = {
        "architectures": ["OPTForCausalLM"],
        "model_type": "opt",
        "hidden_size": 768,
        "ffn_dim": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "max_position_embeddings": 2048,
        "vocab_size": 50272,
        "word_embed_proj_dim": 768,
        "torch_dtype": "float16",
    }
    assert widest_block_bytes(situation(opt)) == 8192 * 2 * 3072 * 2


def test_masking_takes_a_copy_probabilities_and_noise_beside_a_logit():
    # 2 B the logit, and three times 4 B; sorting takes more, the second runner samples with noise alone
    assert bytes_per_logit(situation(), fit().activation) == 14
    assert bytes_per_logit(situation(facts=FACTS_011), fit().activation) == pytest.approx(38, abs=0.5)
    assert bytes_per_logit(situation(facts=FACTS_032), fit().activation) == pytest.approx(2, abs=0.02)


def test_the_masking_kernel_keeps_a_row_of_logits_a_multiprocessor():
    # 132 on an H100, 4 B each
    assert mask_bytes(situation()) == 132 * 128_256 * 4
    assert mask_bytes(situation(facts=FACTS_011)) == 0


def test_what_stays_counts_as_activation_until_vllm_compares_free_memory():
    asked = situation(find_config("Qwen/Qwen3-30B-A3B"), max_model_len=8192)
    later = situation(find_config("Qwen/Qwen3-30B-A3B"), facts=FACTS_032, max_model_len=8192)
    # 8192 tokens x 8 experts x (2048 + 2048) x 2 B of scratch
    assert staying_bytes(asked) >= 8192 * 8 * 4096 * 2
    assert activation_bytes(later, fit().activation) < staying_bytes(later)


def test_the_batch_drives_the_activation_and_the_context_length_does_not():
    short = activation_bytes(situation(max_model_len=2048), fit().activation)
    assert short == activation_bytes(situation(max_model_len=8192), fit().activation)
    assert short < activation_bytes(situation(max_num_batched_tokens=16384), fit().activation)


def test_fewer_sequences_make_a_smaller_sampler():
    # 1024 x 128256 logits at 14 B against 256 x 128256: three quarters of 1.78 GiB less, until a layer binds
    many, few = (activation_bytes(situation(max_num_seqs=n), fit().activation) for n in (1024, 256))
    assert gib(few) < gib(many) - 0.9
    assert not sampler_binds(situation(max_num_seqs=256), fit().activation)


def test_the_second_model_runner_profiles_without_sorting_or_masking():
    asked = situation(facts=FACTS_032)
    assert asked.args.model_runner == "v2"
    assert (
        activation_bytes(asked, fit().activation) == body_bytes(asked, fit().activation) + fit().activation.base_bytes
    )


def test_a_pipeline_stage_keeps_hidden_states_and_residual_for_its_neighbour():
    # 2 x 2 B x 8192 tokens x 4096 hidden = 128 MiB; the first stage also holds the embedded batch, 64 MiB
    assert pipeline_bytes(situation()) == 0
    assert pipeline_bytes(situation(pipeline_parallel_size=2, pp_stage=1)) == 128 * 2**20
    assert pipeline_bytes(situation(pipeline_parallel_size=2)) == 192 * 2**20


def test_the_formula_shows_its_numbers():
    formula = activation_formula(situation(), fit().activation)
    assert "1,024 sequences x 128,256 vocabulary" in formula
    assert activation_formula(situation(CODE_LLAMA_7B), fit().activation).startswith("layers: 8,192 tokens x 66,048 B")


def test_the_same_model_needs_as_much_whatever_the_cache_type():
    assert activation_bytes(situation(LLAMA_3_8B, kv_cache_dtype="fp8"), fit().activation) == activation_bytes(
        situation(LLAMA_3_8B), fit().activation
    )
