"""Scratch that layers share, by hand from vLLM's own shapes."""

from dataclasses import replace

from planner.catalog import find_config
from planner.core.encoder_peak import encoding_of, held_bytes
from planner.core.engine import Version
from planner.core.workspaces import expert_bytes, index_bytes, latent_bytes, passing_bytes, shared_bytes
from tests.core.facts import FACTS_019
from tests.core.situations import FACTS_011, situation

QWEN_MOE = find_config("Qwen/Qwen3-30B-A3B")
V2_LITE = find_config("deepseek-ai/DeepSeek-V2-Lite-Chat")
V3_2 = find_config("deepseek-ai/DeepSeek-V3.2")
GEMMA_3 = find_config("google/gemma-3-4b-it")
FACTS_026 = replace(FACTS_019, version=Version(0, 26))


def test_experts_share_two_buffers_of_top_k_rows_a_token():
    # 8192 x 8 rows; max(I, H) = 2048 and max(2 I, H) = 2048 elements of 2 B
    assert expert_bytes(situation(QWEN_MOE, max_model_len=8192)) == 8192 * 8 * 4096 * 2
    # DeepSeek-V2-Lite: 6 experts a token, I = 1408: max(1408, 2048) + max(2816, 2048)
    assert expert_bytes(situation(V2_LITE, max_model_len=8192)) == 8192 * 6 * (2048 + 2816) * 2


def test_before_0_14_each_layer_gives_its_buffers_back():
    asked = situation(QWEN_MOE, facts=FACTS_011, max_model_len=8192)
    assert shared_bytes(asked) == 0
    assert passing_bytes(asked) == expert_bytes(asked)


def test_the_indexer_gathers_forty_rows_for_every_token_of_the_longest_context():
    asked = situation(V3_2, facts=FACTS_026, tensor_parallel_size=8, max_model_len=163840)
    assert index_bytes(asked) == 40 * 163840 * 132
    assert shared_bytes(asked) >= index_bytes(asked)


def test_mla_projects_up_to_65536_tokens_of_context_at_once():
    # 16 heads x (128 + 128) x 2 B
    assert latent_bytes(situation(V2_LITE, max_model_len=8192)) == 65536 * 16 * 256 * 2
    assert latent_bytes(situation(V2_LITE, max_model_len=8192, tensor_parallel_size=2)) == 65536 * 8 * 256 * 2


def test_sparse_attention_projects_no_context():
    assert latent_bytes(situation(V3_2, facts=FACTS_026, tensor_parallel_size=8, max_model_len=8192)) == 0


def test_as_many_images_are_encoded_as_the_batch_holds():
    # 8192 tokens / 256 a picture; their pixels (4096 patches of 588 numbers) and outputs stay
    asked = situation(GEMMA_3, max_model_len=8192)
    encoding = encoding_of(asked)
    assert (encoding.items, encoding.tokens, encoding.patches) == (32, 8192, 32 * 4096)
    assert held_bytes(asked, encoding) == 2 * (32 * 4096 * 588 + 8192 * 2560)


def test_a_model_without_a_tower_encodes_nothing():
    assert encoding_of(situation()) is None
