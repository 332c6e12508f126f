"""What a pool of blocks holds: lengths, mixes, shared prefixes and bursts, by hand calculation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.core.capacity import Pool, RequestClass, curve, mix_capacity, p95_tokens, requests_at_once


def pool(blocks, block_size=16):
    return Pool(block_size=block_size, num_gpu_blocks=blocks, low_blocks=blocks, high_blocks=blocks)


def request(name="a", *, prompt=1000, output=0, **rest):
    return RequestClass(name=name, prompt_tokens=prompt, output_tokens=output, **rest)


class TestOneLength:
    def test_the_null_block_holds_nothing(self):
        """8,192 tokens are 512 blocks: 1,025 blocks hold two requests, 1,024 only one."""
        assert requests_at_once(pool(1025), 8192).requests == 2
        assert requests_at_once(pool(1024), 8192).requests == 1

    def test_a_request_takes_whole_blocks(self):
        """17 tokens are two blocks of 16: 101 blocks hold 50 of them."""
        assert requests_at_once(pool(101), 17).requests == 50

    def test_the_curve_ends_at_the_maximum_length(self):
        lengths = [point.context_tokens for point in curve(pool(10_000), 3000)]
        assert lengths == [256, 512, 1024, 2048, 3000]

    @given(st.integers(1, 100_000), st.integers(1, 100_000))
    def test_more_context_never_gives_more_requests(self, blocks, tokens):
        held = [point.requests for point in curve(pool(blocks), tokens)]
        assert held == sorted(held, reverse=True)


class TestMix:
    def test_shares_weigh_the_blocks(self):
        """Half 160 tokens (10 blocks), half 1,600 (100 blocks): 55 on average; 5,500 usable blocks hold 100."""
        classes = [request("short", prompt=160, share=0.5), request("long", prompt=1600, share=0.5)]
        answer = mix_capacity(classes, pool(5501))
        assert (answer.requests_at_once, answer.mean_blocks) == (100, 55)

    def test_a_shared_prefix_is_held_once(self):
        """A prefix of 1,600 tokens is 100 blocks; each request adds 10: 1,100 usable blocks hold 100, not 10."""
        shared = request(prompt=1760, shared_prefix_tokens=1600)
        assert mix_capacity([shared], pool(1101)).requests_at_once == 100
        assert mix_capacity([request(prompt=1760)], pool(1101)).requests_at_once == 10

    def test_only_whole_blocks_of_a_prefix_are_shared(self):
        """1,599 tokens fill 99 blocks; the 100th is each request's own."""
        assert mix_capacity([request(prompt=1760, shared_prefix_tokens=1599)], pool(1101)).shared_prefix_blocks == 99

    def test_the_waste_is_the_empty_end_of_the_last_block(self):
        """17 tokens in 32 slots waste 15 of them."""
        assert mix_capacity([request(prompt=17)], pool(100)).waste_share == pytest.approx(15 / 32)

    def test_output_tokens_count_as_held(self):
        assert mix_capacity([request(prompt=100, output=60)], pool(101)).requests_at_once == 10


class TestBurst:
    def test_of_a_burst_the_rest_waits(self):
        """85 requests of 512 blocks each, room for 59 of them."""
        answer = mix_capacity([request(prompt=8000, output=192, concurrent=85)], pool(59 * 512 + 1))
        assert (answer.burst, answer.burst_running, answer.burst_waiting) == (85, 59, 26)

    def test_a_burst_that_fits_runs_whole(self):
        answer = mix_capacity([request(prompt=16, concurrent=3)], pool(100))
        assert (answer.burst_running, answer.burst_waiting) == (3, 0)

    def test_classes_are_admitted_in_turn(self):
        """Ten blocks: a long one (6) and a short one (1) run, the next long one finds three blocks and waits."""
        classes = [request("long", prompt=96, concurrent=2), request("short", prompt=16, concurrent=2)]
        assert mix_capacity(classes, pool(11)).burst_running == 2


class TestNinetyFifthPercentile:
    def test_a_rare_long_class_is_beyond_it(self):
        classes = [request("common", prompt=500, share=0.96), request("rare", prompt=9000, share=0.04)]
        assert p95_tokens(classes) == 500

    def test_a_class_of_a_tenth_decides_it(self):
        classes = [request("common", prompt=500, share=0.9), request("filing", prompt=8000, output=192, share=0.1)]
        assert p95_tokens(classes) == 8192
