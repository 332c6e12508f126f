"""The budget of a rank: what the terms sum to, what is exact, and where a boot stops."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.core.estimate import estimate
from planner.core.units import GIB, MIB
from tests.core.facts import FACTS_019, FACTS_032, FACTS_085
from tests.core.questions import A100, H100, LAPTOP, LLAMA_3_8B, LLAMA_3_70B, TINY, ask

VERSIONS = (FACTS_085, FACTS_019, FACTS_032)


def only_rank(**question):
    return estimate(ask(**question)).ranks[0]


def term(rank, name):
    return next(term for term in rank.terms if term.name == name)


@given(
    facts=st.sampled_from(VERSIONS),
    config=st.sampled_from((LLAMA_3_8B, LLAMA_3_70B)),
    device=st.sampled_from((A100, H100)),
    tp=st.sampled_from((1, 2, 4, 8)),
    pp=st.sampled_from((1, 2, 3)),
    utilization=st.floats(0.3, 0.97),
)
def test_the_terms_inside_the_budget_sum_to_it(facts, config, device, tp, pp, utilization):
    answer = estimate(
        ask(
            config,
            device,
            facts,
            tensor_parallel_size=tp,
            pipeline_parallel_size=pp,
            gpu_memory_utilization=utilization,
        )
    )
    assert len(answer.ranks) == tp * pp
    for rank in answer.ranks:
        assert sum(term.bytes for term in rank.terms if term.inside_budget) == rank.requested_bytes
        assert term(rank, "outside_budget").bytes == rank.total_bytes - rank.requested_bytes
        assert all(term.low_bytes <= term.bytes <= term.high_bytes for term in rank.terms)


def test_weights_are_exact_and_measured_terms_are_not():
    rank = only_rank()
    assert term(rank, "weights").exact
    assert not term(rank, "activation").exact
    assert term(rank, "activation").evidence


def test_graphs_came_inside_the_budget_in_0_20():
    assert term(only_rank(facts=FACTS_032), "cuda_graphs").inside_budget
    assert not term(only_rank(facts=FACTS_019), "cuda_graphs").inside_budget


def test_the_budget_is_rounded_up_since_0_16():
    """A total of 1,001 bytes at 0.5 is 500.5: 501 today, 500 in 0.8.5."""
    device = replace(H100.with_total(85_000_000_001))
    assert only_rank(device=device, gpu_memory_utilization=0.5).requested_bytes == 42_500_000_001
    assert only_rank(device=device, facts=FACTS_085, gpu_memory_utilization=0.5).requested_bytes == 42_500_000_000


def test_a_given_cache_size_is_what_the_allocator_works_from():
    answer = estimate(ask(kv_cache_memory_bytes=20 * GIB))
    assert answer.kv_cache.available.exact
    assert answer.kv_cache.num_gpu_blocks == 20 * GIB // (2 * MIB)
    rank = answer.ranks[0]
    assert sum(term.bytes for term in rank.terms if term.inside_budget) == rank.requested_bytes


def test_a_range_of_the_total_widens_the_cache():
    known = estimate(ask(LLAMA_3_70B, A100.with_total(A100.total_bytes), tensor_parallel_size=4)).kv_cache
    ranged = estimate(ask(LLAMA_3_70B, A100, tensor_parallel_size=4)).kv_cache
    assert ranged.available.bytes == known.available.bytes
    assert ranged.available.high_bytes > known.available.high_bytes


class TestCpuPlatform:
    def test_a_given_size_gives_the_blocks_of_a_real_boot(self):
        """vLLM 0.32 on CPU: 1 GiB, 4 layers, 2 KV heads of 32: 8,192 blocks of 128, 1,048,576 tokens, 128 at 8,192."""
        cache = estimate(ask(TINY, LAPTOP, kv_cache_memory_bytes=GIB)).kv_cache
        assert (cache.num_gpu_blocks, cache.tokens, cache.max_concurrency) == (8192, 1048576, 128.0)

    def test_float32_halves_it(self):
        cache = estimate(ask(TINY, LAPTOP, kv_cache_memory_bytes=GIB, dtype="float32")).kv_cache
        assert (cache.num_gpu_blocks, cache.tokens) == (4096, 524288)

    def test_fp8_doubles_it(self):
        cache = estimate(ask(TINY, LAPTOP, kv_cache_memory_bytes=GIB, kv_cache_dtype="fp8")).kv_cache
        assert (cache.num_gpu_blocks, cache.tokens) == (16384, 2097152)

    def test_small_blocks_are_taken_as_given(self):
        given_blocks = {"kv_cache_memory_bytes": 2 * GIB, "block_size": 32, "max_model_len": 4096}
        cache = estimate(ask(TINY, LAPTOP, **given_blocks)).kv_cache
        assert (cache.num_gpu_blocks, cache.tokens, cache.max_concurrency) == (65536, 2097152, 512.0)

    def test_auto_length_of_a_real_boot(self):
        """4,000,000 B are 30 blocks, one of them the null block: 29 x 128 = 3,712 tokens, and 3,840 are logged."""
        cache = estimate(ask(TINY, LAPTOP, kv_cache_memory_bytes=4_000_000, max_model_len="auto")).kv_cache
        assert (cache.num_gpu_blocks, cache.max_model_len, cache.tokens) == (30, 3712, 3840)

    def test_too_small_a_cache_names_the_length_vllm_names(self):
        """A real boot with 15 blocks of 131,072 B refused 8,192 tokens and estimated 1,792."""
        answer = estimate(ask(TINY, LAPTOP, kv_cache_memory_bytes=15 * 131072))
        assert answer.reasons[0].rule == "kv_one_request"
        assert "1,792" in answer.reasons[0].message

    def test_a_cache_larger_than_the_machine(self):
        answer = estimate(ask(TINY, LAPTOP, kv_cache_memory_bytes=64 * GIB))
        assert (answer.verdict, answer.reasons[0].rule) == ("does_not_fit", "cpu_kv_mem")

    def test_the_default_share_of_a_busy_machine_is_refused(self):
        answer = estimate(ask(TINY, LAPTOP, free_bytes=12 * GIB))
        assert (answer.verdict, answer.reasons[0].rule) == ("does_not_fit", "cpu_startup_mem")


class TestRemedies:
    def test_a_cache_sized_by_its_own_flag_is_raised_by_it(self):
        """64 blocks of 131,072 B and the null block are needed for 8,192 tokens; 15 are given."""
        remedy = estimate(ask(TINY, LAPTOP, kv_cache_memory_bytes=15 * 131072)).reasons[0].remedy
        assert f"--kv-cache-memory-bytes {65 * 131072}" in remedy
        assert estimate(ask(TINY, LAPTOP, kv_cache_memory_bytes=65 * 131072)).verdict == "fits"

    def test_a_share_that_would_do_is_named_and_does(self):
        tight = {"config": {**LLAMA_3_8B, "max_position_embeddings": 131072}, "device": H100.with_total(40 * GIB)}
        reason = estimate(ask(**tight, gpu_memory_utilization=0.7)).reasons[0]
        share = float(reason.remedy.partition("raise --gpu-memory-utilization to ")[2].split(",")[0])
        assert reason.rule == "kv_one_request"
        assert estimate(ask(**tight, gpu_memory_utilization=share)).verdict == "fits"


class TestWhereABootStops:
    def test_weights_that_exceed_the_device(self):
        """70.55 billion parameters x 2 B are 131 GiB."""
        answer = estimate(ask(LLAMA_3_70B, A100))
        assert (answer.verdict, answer.reasons[0].rule) == ("does_not_fit", "torch_oom")
        assert "131.4" in answer.reasons[0].message

    def test_memory_that_others_hold(self):
        """A published boot: 60.87 of 79.19 GiB free, 0.95 asked for 75.23."""
        answer = estimate(ask(device=H100, free_bytes=int(60.87 * GIB), gpu_memory_utilization=0.95))
        assert (answer.verdict, answer.reasons[0].rule) == ("does_not_fit", "free_memory")
        assert "75.23 GiB" in answer.reasons[0].message
        assert "0.76" in answer.reasons[0].remedy

    def test_a_cache_too_small_for_one_request(self):
        """Llama-3-8B on 24 GiB: 15 GiB of weights leave some 5 GiB, a request of 131,072 tokens needs 16."""
        config = {**LLAMA_3_8B, "max_position_embeddings": 131072}
        answer = estimate(ask(config, H100.with_total(24 * GIB)))
        assert (answer.verdict, answer.reasons[0].rule) == ("does_not_fit", "kv_one_request")
        assert "16 GiB" in answer.reasons[0].message
        fitting = int(answer.reasons[0].remedy.split()[2])
        assert estimate(ask(config, H100.with_total(24 * GIB), max_model_len=fitting)).verdict == "fits"

    def test_graphs_outside_the_budget_need_room_there(self):
        """0.19 at 0.99 of 79.19 GiB leaves 0.79 outside, of which the context holds 0.51; graphs want some 0.9."""
        answer = estimate(ask(facts=FACTS_019, gpu_memory_utilization=0.99))
        assert answer.verdict == "does_not_fit"


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_doubling_tp_never_raises_weights(tp):
    smaller = only_rank(config=LLAMA_3_70B, tensor_parallel_size=2 * tp)
    larger = only_rank(config=LLAMA_3_70B, tensor_parallel_size=tp)
    assert term(smaller, "weights").bytes < term(larger, "weights").bytes
