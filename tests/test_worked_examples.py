"""The figures of docs/worked-examples.md: exact ones by hand, measured ones as the planner answers today."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner import catalog
from planner.core.capacity import RequestClass
from planner.core.engine import EngineArgs
from planner.core.estimate import Question, estimate
from planner.core.units import GIB

TEXT = " ".join((Path(__file__).parents[1] / "docs" / "worked-examples.md").read_text().split())
BURST = RequestClass(name="burst", prompt_tokens=8000, output_tokens=192, concurrent=85)
A100_BANDWIDTH = 2.039e12
A100_FLOPS = 312e12


def question(model, **flags):
    return Question(
        model=catalog.find_model(model),
        gpu=catalog.find_gpu("a100-sxm4-80gb"),
        gpu_count=8,
        facts=catalog.engine_facts("0.32.0"),
        args=EngineArgs(dtype="float16", **flags),
        fit=catalog.fit(),
        requests=(BURST,),
    )


def desk(utilization=0.90, **flags):
    return question(
        "meta-llama/Meta-Llama-3-70B-Instruct",
        tensor_parallel_size=4,
        gpu_memory_utilization=utilization,
        max_model_len=8192,
        **flags,
    )


class TestThePostMortem:
    def test_bytes_of_a_token(self):
        cache = estimate(desk()).kv_cache
        assert cache.bytes_per_token == 2 * 80 * 8 * 128 * 2 == 327_680
        assert cache.bytes_per_token_per_rank == 81_920

    def test_bytes_of_a_full_sequence(self):
        assert estimate(desk()).capacity.bytes_per_full_request == 327_680 * 8192 == 2_684_354_560 == 2.5 * GIB
        assert 62.5 * GIB == 100 * 2_684_354_560 / 4

    def test_weights_of_a_rank(self):
        """Per layer and rank: q, k, v, o and the MLP a quarter, two norms whole; embedding and head a quarter each."""
        layer = (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672) // 4 + 2 * 8192
        parameters = 80 * layer + 2 * 128_256 * 8192 // 4 + 8192
        rope, scales = 8192 * 128 * 2, 80 * 16
        weights = next(term for term in estimate(desk()).ranks[0].terms if term.name == "weights")
        assert weights.bytes == parameters * 2 + rope + scales == 35_280_930_048
        assert round(weights.bytes / GIB, 2) == 32.86

    def test_131072_blocks_would_be_160_gib(self):
        assert 131_072 * 16 * 81_920 == 171_798_691_840 == 160 * GIB
        assert int(79.35 * GIB) // (16 * 81_920) == 65_003
        assert estimate(desk(0.85)).kv_cache.high_blocks < 65_003

    @pytest.mark.parametrize("utilization", [0.90, 0.85, 0.82])
    def test_what_really_runs_at_once(self, utilization):
        answer = estimate(desk(utilization))
        cache, mix = answer.kv_cache, answer.capacity.mix
        gib = [
            f"{size / GIB:.2f}"
            for size in (cache.available.bytes, cache.available.low_bytes, cache.available.high_bytes)
        ]
        row = (
            f"| {utilization:.2f} | {gib[0]} GiB ({gib[1]}–{gib[2]}) | {cache.num_gpu_blocks:,} "
            f"| {mix.requests_at_once} ({mix.low_requests}–{mix.high_requests}) | {mix.burst_waiting} "
            f"| {answer.slack.outside_bytes / GIB:.2f} GiB |"
        )
        assert row in TEXT
        assert mix.burst_running == (cache.num_gpu_blocks - 1) // 512

    def test_the_measured_terms_as_written(self):
        terms = {term.name: f"{term.bytes / GIB:.2f}" for term in estimate(desk()).ranks[0].terms}
        sentence = (
            "71.24 − {weights} weights − {activation} activations − {non_torch} non-torch − {cuda_graphs} CUDA graphs"
        )
        assert sentence.format(**terms) in TEXT

    def test_slack_as_written(self):
        slack = estimate(desk()).slack
        assert slack.verdict == "ample"
        assert f"against {slack.needed_bytes / GIB:.2f} GiB that are usually allocated later" in TEXT
        assert f"({slack.high_needed_bytes / GIB:.2f} at worst)" in TEXT

    def test_where_the_cache_passes_the_weights(self):
        capacity = estimate(desk()).capacity
        assert capacity.tokens_where_kv_passes_weights == -(-4 * 35_280_930_048 // 327_680) == 430_676
        assert capacity.sessions_where_kv_passes_weights == 53

    def test_uneven_heads_are_refused(self):
        asked = desk()
        answer = estimate(replace(asked, args=replace(asked.args, tensor_parallel_size=3)))
        assert (answer.verdict, answer.reasons[0].rule) == ("refused", "heads_tp")

    def test_the_floor_of_a_decoding_step(self):
        embedding = 128_256 * 8192 // 4 * 2
        read = 35_278_831_616 - embedding
        assert embedding == 525_336_576
        assert round(read / A100_BANDWIDTH * 1e3, 1) == 17.0

    def test_the_floor_of_the_first_token(self):
        matrices = 70_553_706_496 - 2 * 128_256 * 8192 - 161 * 8192
        assert f"{matrices:,} weights" in TEXT
        attention = 80 * 4 * 64 * 128 * 1500 * 1500 / 2
        total = 2 * matrices * 1500 + 2 * 128_256 * 8192 + attention
        assert round(total / 1e12, 1) == 208.3
        assert round(total / (4 * A100_FLOPS) * 1e3, 1) == 166.9


class TestTheTutorial:
    def tutorial(self, **flags):
        return question("meta-llama/Llama-2-70b-chat-hf", gpu_memory_utilization=0.90, kv_cache_dtype="fp8", **flags)

    def test_its_length_is_refused_with_the_remedy(self):
        reason = estimate(self.tutorial(max_model_len=32768, enable_prefix_caching=True)).reasons[0]
        assert reason.rule == "max_model_len_gt_derived"
        assert "4,096" in reason.message
        assert "--hf-overrides" in reason.remedy

    def test_bytes_of_its_sequence(self):
        model = catalog.find_model("meta-llama/Llama-2-70b-chat-hf")
        token = 2 * model.num_layers * model.num_kv_heads * model.head_dim * 2
        assert token * 32_768 == 10_737_418_240
        assert token * 32_768 * model.num_attention_heads // model.num_kv_heads == 85_899_345_920
        assert token // 2 * 32_768 == 5_368_709_120

    def test_an_fp8_cache_has_half_the_bytes(self):
        cache = estimate(self.tutorial(max_model_len=4096, tensor_parallel_size=4)).kv_cache
        assert cache.bytes_per_token == 327_680 // 2

    def test_prefix_caching_is_on_without_the_flag(self):
        assert estimate(self.tutorial(max_model_len=4096, tensor_parallel_size=4)).engine.enable_prefix_caching

    def test_how_many_gpus_it_needs(self):
        assert estimate(self.tutorial(max_model_len=4096)).reasons[0].rule == "torch_oom"
        held = [
            estimate(
                self.tutorial(max_model_len=4096, tensor_parallel_size=tp)
            ).capacity.requests_at_max_model_len.requests
            for tp in (2, 4)
        ]
        assert f"TP=2 on A100-80GB holds {held[0]} requests at once ±, TP=4 holds {held[1]} ±" in TEXT
