"""What each technique does to a plan, against the papers' figures and sums made by hand."""

from dataclasses import replace

import pytest

from planner.core.cache_dtypes import cache_dtype_support
from planner.core.capacity import RequestClass, mix_capacity
from planner.core.engine import Version
from planner.core.errors import BadInput
from planner.core.estimate import KvCache, estimate
from planner.core.eviction import attention_sinks, heavy_hitters
from planner.core.paging import contiguous_waste_share, paging, prefix_sharing
from planner.core.techniques import techniques
from planner.core.terms import exactly
from tests.core.questions import A100, H100, LAPTOP, LLAMA_3_70B, T4, ask

# The ShareGPT trace of the PagedAttention paper (section 6.1): 161 tokens in and 338 out on average.
SHAREGPT = (RequestClass(name="sharegpt", prompt_tokens=161, output_tokens=338),)
LONG = (RequestClass(name="long", prompt_tokens=8000, output_tokens=192),)


def a_cache(usable_blocks, max_model_len):
    """A cache of so many blocks of 16 tokens beside the null block, at 1,024 B a token."""
    blocks = usable_blocks + 1
    return KvCache(
        available=exactly(blocks * 16 * 1024),
        bytes_per_token=1024,
        bytes_per_token_per_rank=1024,
        block_size=16,
        num_gpu_blocks=blocks,
        low_blocks=blocks,
        high_blocks=blocks,
        tokens=blocks * 16,
        low_tokens=blocks * 16,
        high_tokens=blocks * 16,
        max_concurrency=1.0,
        max_model_len=max_model_len,
        binding_rank=0,
        formula="",
    )


def figure(technique, label):
    return next(measure for measure in technique.measures if measure.label == label)


def named(found, name):
    return next(technique for technique in found if technique.name == name)


def test_reserving_the_longest_length_wastes_what_the_paper_found():
    # 499 of 2,048 reserved tokens: 75.6 % unused. The paper and its authors give 60 to 80 %.
    assert contiguous_waste_share(SHAREGPT, 2048) == pytest.approx(1 - 499 / 2048)
    assert 0.60 < contiguous_waste_share(SHAREGPT, 2048) < 0.80


def test_pages_waste_under_four_percent_as_the_paper_found():
    # 499 tokens take 32 pages of 16, 512 slots: 13 of them, 2.5 %, stay empty.
    unused = figure(paging(SHAREGPT, a_cache(3200, 2048)), "unused memory")
    assert unused.after == pytest.approx(13 / 512)
    assert unused.after < 0.04


def test_pages_hold_more_requests_in_the_same_memory():
    # 3,200 blocks are 51,200 tokens: 25 reservations of 2,048, or 100 requests of 32 blocks.
    held = figure(paging(SHAREGPT, a_cache(3200, 2048)), "requests at once")
    assert (held.before, held.after) == (25, 100)


def test_a_request_longer_than_its_reservation_is_told():
    with pytest.raises(BadInput, match="499 tokens is longer than max_model_len 256"):
        contiguous_waste_share(SHAREGPT, 256)


def test_a_shared_prefix_is_held_once():
    # 320 tokens are 20 blocks: 50 requests in 1,000. With 10 of the 20 held once: (1,000 - 10) / 10 = 99.
    mix = (RequestClass(name="chat", prompt_tokens=304, output_tokens=16, shared_prefix_tokens=160),)
    held = figure(prefix_sharing(mix, a_cache(1000, 2048), on=True), "requests at once")
    assert (held.before, held.after) == (50, 99)


def test_a_prefix_shorter_than_a_block_is_not_shared():
    mix = (RequestClass(name="chat", prompt_tokens=304, output_tokens=16, shared_prefix_tokens=15),)
    assert "nothing is shared" in prefix_sharing(mix, a_cache(1000, 2048), on=True).effect


def test_without_prefix_caching_nothing_is_gained():
    mix = (RequestClass(name="chat", prompt_tokens=304, output_tokens=16, shared_prefix_tokens=160),)
    sharing = prefix_sharing(mix, a_cache(1000, 2048), on=False)
    assert figure(sharing, "requests at once").after == 50
    assert sharing.effect.startswith("Off in this plan.")


def test_attention_sinks_would_keep_2048_tokens_a_request():
    # 8,192 tokens are 512 blocks: 10 requests in 5,120. 4 + 2,044 tokens are 128 blocks: 40.
    held = figure(attention_sinks(LONG, a_cache(5120, 8192)), "requests at once")
    assert (held.before, held.after) == (10, 40)


def test_attention_sinks_never_lengthen_a_request():
    held = figure(attention_sinks(SHAREGPT, a_cache(3200, 2048)), "requests at once")
    assert (held.before, held.after) == (100, 100)


def test_heavy_hitters_would_keep_a_fifth():
    # A fifth of 8,192 is 1,638 tokens, 103 blocks: 49 requests in 5,120.
    assert figure(heavy_hitters(LONG, a_cache(5120, 8192)), "requests at once").after == 49


@pytest.mark.parametrize("make", [attention_sinks, heavy_hitters])
def test_what_vllm_lacks_says_so_and_what_comes_nearest(make):
    technique = make(LONG, a_cache(5120, 8192))
    assert not technique.in_vllm
    assert not technique.usable
    assert "vLLM does not have it" in technique.effect
    assert technique.nearest


def test_small_caches_of_llama_3_70b_by_hand():
    # 80 layers x 8 KV heads: 2 x 128 B in fp8; 128 + 8 B with int4 and two scales; 2 x (64 + 8) B in nvfp4.
    question = ask(LLAMA_3_70B, H100, gpu_count=4, tensor_parallel_size=4)
    found = techniques(question, estimate(question))
    sizes = {
        name: figure(named(found, name), "bytes a token").after for name in ("fp8", "int4_per_token_head", "nvfp4")
    }
    assert sizes == {"fp8": 640 * 256, "int4_per_token_head": 640 * 136, "nvfp4": 640 * 144}
    assert figure(named(found, "fp8"), "bytes a token").before == 327_680


def test_an_fp8_cache_holds_what_a_plan_with_the_flag_holds():
    mix = (RequestClass(name="chat", prompt_tokens=1500, output_tokens=400),)
    plain = ask(LLAMA_3_70B, H100, gpu_count=4, tensor_parallel_size=4, requests=mix)
    flagged = replace(plain, args=replace(plain.args, kv_cache_dtype="fp8"))
    small = mix_capacity(mix, estimate(flagged).kv_cache.pool)
    assert figure(named(techniques(plain, estimate(plain)), "fp8"), "requests at once").after == small.requests_at_once


def test_a_cache_that_is_small_already_says_so():
    question = ask(LLAMA_3_70B, H100, gpu_count=4, tensor_parallel_size=4, kv_cache_dtype="fp8")
    assert "no more already: 163,840 B" in named(techniques(question, estimate(question)), "fp8").effect


def test_a_fixed_number_of_blocks_holds_no_more_however_small_a_token():
    question = ask(LLAMA_3_70B, H100, gpu_count=4, tensor_parallel_size=4, num_gpu_blocks_override=5121)
    held = figure(named(techniques(question, estimate(question)), "fp8"), "requests at once")
    assert (held.before, held.after) == (10, 10)


@pytest.mark.parametrize(
    ("device", "head_dim", "release", "dtype", "supported"),
    [
        (T4, 128, Version(0, 32), "fp8", False),
        (A100, 128, Version(0, 32), "fp8", True),
        (A100, 80, Version(0, 32), "fp8", False),
        (H100, 80, Version(0, 32), "fp8", True),
        (LAPTOP, 128, Version(0, 32), "fp8", True),
        (LAPTOP, 128, Version(0, 32), "nvfp4", False),
        (H100, 128, Version(0, 24), "int4_per_token_head", False),
        (H100, 128, Version(0, 26), "int4_per_token_head", True),
        (A100, 128, Version(0, 32), "fp8_per_token_head", False),
        (H100, 128, Version(0, 19, 1), "int8_per_token_head", False),
        (H100, 128, Version(0, 20), "int8_per_token_head", True),
    ],
)
def test_a_small_cache_is_read_by_some_releases_on_some_devices(device, head_dim, release, dtype, supported):
    found = {kind.name: kind for kind in cache_dtype_support(release, device, head_dim)}
    assert found[dtype].supported is supported
    assert found[dtype].why


def test_a_refused_plan_has_no_techniques():
    question = ask(LLAMA_3_70B, H100, tensor_parallel_size=3)
    assert techniques(question, estimate(question)) == ()
