"""vLLM's allocator: expected values are vLLM's own answers, published boots, or sums shown here."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.core.kv_cache import kv_heads_per_rank
from planner.core.units import GIB, MIB
from tests.core.facts import FACTS_019, FACTS_032, FACTS_085
from tests.core.full_attention import StageKv, kv_cache_plan

LLAMA_8B = StageKv(layers=32, kv_heads=8, head_dim=128, element_bytes=2, available_bytes=20 * GIB)
LLAMA_8B_LENGTH = 131072


def plan(stage=LLAMA_8B, *, available=None, facts=FACTS_032, length=LLAMA_8B_LENGTH, **settings):
    stage = stage if available is None else replace(stage, available_bytes=available)
    return kv_cache_plan([stage], block_size=16, max_model_len=length, facts=facts, **settings)


class TestGoldenVectorsOfVllm032:
    """What vLLM 0.32's own planner answered for 32 full-attention layers, 8 KV heads of 128, bf16."""

    def test_twenty_gib_hold_ten_thousand_blocks(self):
        answer = plan()
        assert (answer.num_gpu_blocks, answer.tokens, answer.max_concurrency) == (10240, 163840, 1.25)

    def test_exactly_one_request_is_refused_because_the_null_block_is_withheld(self):
        answer = plan(available=16 * GIB)
        assert (answer.refusal, answer.estimated_max_model_len) == ("kv_one_request", 131056)

    def test_one_more_block_makes_it_fit(self):
        answer = plan(available=16 * GIB + 2 * MIB)
        assert (answer.refusal, answer.num_gpu_blocks, answer.tokens) == ("", 8193, 131088)

    def test_auto_length_takes_what_fits(self):
        answer = plan(available=10 * GIB, auto_max_model_len=True)
        assert (answer.max_model_len, answer.num_gpu_blocks, answer.tokens) == (81904, 5120, 81920)


class TestPublishedBoots:
    """Boots of vLLM 0.19.0 on an H100 80GB (llm-d-planner pull request 205)."""

    def test_llama_8b_at_58_11_gib(self):
        answer = plan(available=29751 * 2 * MIB, facts=FACTS_019, length=8192)
        assert (answer.tokens, round(answer.max_concurrency, 2)) == (476016, 58.11)
        assert round(29751 * 2 * MIB / GIB, 2) == 58.11

    def test_the_stage_with_the_fewest_blocks_binds(self):
        """PP=2: 66.54 and 65.63 GiB are free for KV, and the log says 67,207 blocks: the second stage's."""
        stages = [
            StageKv(layers=16, kv_heads=8, head_dim=128, element_bytes=2, available_bytes=round(gib * GIB))
            for gib in (66.54, 65.63)
        ]
        answer = kv_cache_plan(stages, block_size=16, max_model_len=8192, facts=FACTS_019)
        assert answer.binding_stage == 1
        assert answer.num_gpu_blocks == pytest.approx(67207, abs=0.005 * GIB / MIB + 1)

    def test_fp8_holds_twice_the_tokens(self):
        """Qwen2.5-7B (28 layers, 4 KV heads of 128): 58.53 GiB are 68,500 blocks in bf16 and 137,000 in fp8."""
        qwen = StageKv(layers=28, kv_heads=4, head_dim=128, element_bytes=2, available_bytes=68500 * 28 * 16 * 2048)
        half = replace(qwen, element_bytes=1)
        assert plan(qwen, facts=FACTS_019, length=8192).num_gpu_blocks == 68500
        assert plan(half, facts=FACTS_019, length=8192).num_gpu_blocks == 137000


class TestWhatTheLogFiguresMean:
    def test_since_0_20_the_size_is_the_concurrency_in_tokens(self):
        """1,000 blocks of 16 and requests of 100 tokens (7 blocks): 1000 / 7 x 100 = 14,285 tokens, not 16,000."""
        assert plan(available=1000 * 2 * MIB, length=100).tokens == 14285

    def test_until_0_19_the_size_is_the_blocks_in_tokens(self):
        assert plan(available=1000 * 2 * MIB, length=100, facts=FACTS_019).tokens == 16000

    def test_0_8_5_divides_tokens_by_the_length(self):
        assert plan(available=1000 * 2 * MIB, length=100, facts=FACTS_085).max_concurrency == 160.0
        assert plan(available=1000 * 2 * MIB, length=100, facts=FACTS_019).max_concurrency == 1000 / 7

    def test_before_0_29_no_block_is_withheld_from_the_check(self):
        assert plan(available=16 * GIB, facts=FACTS_019).refusal == ""


class TestRefusals:
    def test_nothing_left_is_no_kv_memory(self):
        assert plan(available=-GIB).refusal == "no_kv_memory"

    def test_a_single_block_is_the_null_block(self):
        assert plan(available=2 * MIB).refusal == "no_kv_memory"

    def test_an_override_replaces_what_was_measured(self):
        """100 blocks of 128 tokens are 12,800 tokens: a real boot of the CPU build with 8,192-token requests."""
        tiny = StageKv(layers=4, kv_heads=2, head_dim=32, element_bytes=2, available_bytes=GIB)
        answer = kv_cache_plan([tiny], block_size=128, max_model_len=8192, facts=FACTS_032, num_gpu_blocks_override=100)
        assert (answer.num_gpu_blocks, answer.tokens, answer.max_concurrency) == (100, 12800, 1.5625)


def test_kv_heads_are_replicated_when_tp_exceeds_them():
    assert [kv_heads_per_rank(8, tp) for tp in (1, 2, 4, 8, 16)] == [8, 4, 2, 1, 1]


stages = st.builds(
    StageKv,
    layers=st.integers(1, 130),
    kv_heads=st.sampled_from([1, 2, 4, 8, 16, 40]),
    head_dim=st.sampled_from([64, 80, 96, 128, 256]),
    element_bytes=st.sampled_from([1, 2, 4]),
    available_bytes=st.integers(-GIB, 200 * GIB),
)


@given(stages, st.integers(1, 200_000))
def test_a_longer_request_never_raises_concurrency(stage, length):
    shorter, longer = plan(stage, length=length), plan(stage, length=length + 1)
    assert longer.max_concurrency <= shorter.max_concurrency


@given(stages, st.integers(1, 200_000))
def test_the_estimated_length_is_the_longest_that_boots(stage, length):
    answer = plan(stage, length=length)
    if answer.refusal == "kv_one_request" and answer.estimated_max_model_len:
        assert plan(stage, length=answer.estimated_max_model_len).refusal == ""
        assert plan(stage, length=answer.estimated_max_model_len + 1).refusal == "kv_one_request"


@given(stages)
def test_blocks_never_outgrow_the_bytes(stage):
    answer = plan(stage)
    per_block = 16 * stage.layers * stage.kv_heads * 2 * stage.head_dim * stage.element_bytes
    held = answer.num_gpu_blocks * per_block
    assert held <= max(0, stage.available_bytes) < held + per_block
