"""What vLLM refuses before it measures memory; conditions and meanings are those of vLLM 0.32."""

from dataclasses import replace

import pytest

from planner.core.engine import Version
from planner.core.errors import BadInput
from planner.core.estimate import estimate
from tests.core.facts import FACTS_032, FACTS_085
from tests.core.questions import A100, LAPTOP, LLAMA_2_70B, LLAMA_3_70B, T4, TINY, ask


def refusal(**question):
    answer = estimate(ask(**question))
    return answer.reasons[0].rule if answer.verdict == "refused" else answer.verdict


def warnings(**question):
    return {reason.rule for reason in estimate(ask(**question)).warnings}


class TestLength:
    def test_llama_2_at_32768_is_refused_for_its_trained_length(self):
        question = ask(LLAMA_2_70B, A100, tensor_parallel_size=4, max_model_len=32768)
        answer = estimate(question)
        assert answer.verdict == "refused"
        assert answer.reasons[0].rule == "max_model_len_gt_derived"
        assert "4,096" in answer.reasons[0].message
        assert "VLLM_ALLOW_LONG_MAX_MODEL_LEN" in answer.reasons[0].remedy

    def test_the_trained_length_itself_is_accepted(self):
        assert refusal(config=LLAMA_2_70B, device=A100, tensor_parallel_size=4, max_model_len=4096) == "fits"

    def test_the_environment_can_allow_it_with_a_warning(self):
        allowed = (("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1"),)
        assert "max_model_len_gt_derived" in warnings(max_model_len=16384, environment=allowed)

    def test_zero_tokens_are_no_length(self):
        assert refusal(max_model_len=0) == "max_model_len_not_positive"


class TestLayout:
    def test_heads_must_be_divisible(self):
        assert refusal(config=LLAMA_3_70B, tensor_parallel_size=3) == "heads_tp"

    def test_kv_heads_must_be_split_or_repeated_evenly(self):
        """48 heads and 8 KV heads on 6 ranks: 48 divides, 8 neither splits nor repeats."""
        config = {**LLAMA_3_70B, "num_attention_heads": 48, "hidden_size": 6144}
        assert refusal(config=config, tensor_parallel_size=6) == "kvheads_tp"

    def test_more_ranks_than_gpus(self):
        assert (
            refusal(config=LLAMA_3_70B, tensor_parallel_size=4, pipeline_parallel_size=2, gpu_count=4)
            == "world_gt_gpus"
        )

    def test_a_partition_must_name_every_stage_and_layer(self):
        split = (("VLLM_PP_LAYER_PARTITION", "20,20,20"),)
        assert refusal(config=LLAMA_3_70B, pipeline_parallel_size=2, environment=split) == "pp_partition_len"

    def test_a_dense_model_has_no_experts_to_spread(self):
        assert refusal(enable_expert_parallel=True) == "ep_dense"

    def test_no_ranks_at_all_is_no_layout(self):
        with pytest.raises(BadInput, match="tensor_parallel_size"):
            estimate(ask(tensor_parallel_size=0))


class TestNumbers:
    @pytest.mark.parametrize("utilization", [0, -0.5, 1.01, 90])
    def test_utilization_is_a_share(self, utilization):
        assert refusal(gpu_memory_utilization=utilization) == "util_range"

    def test_a_step_must_serve_every_sequence(self):
        assert refusal(max_num_seqs=512, max_num_batched_tokens=256) == "batched_lt_seqs"

    def test_without_chunked_prefill_a_prompt_must_fit_one_step(self):
        assert refusal(enable_chunked_prefill=False, max_num_batched_tokens=4096) == "batched_lt_len_nochunk"

    def test_by_default_the_step_grows_to_the_length_without_chunked_prefill(self):
        assert estimate(ask(device=A100, enable_chunked_prefill=False)).engine.max_num_batched_tokens == 8192

    def test_too_many_tokens_a_step_only_warn(self):
        assert "batched_gt_seqs_len" in warnings(max_num_seqs=2, max_model_len=1024, max_num_batched_tokens=8192)

    def test_a_long_prefill_threshold_above_the_length(self):
        assert refusal(max_model_len=4096, long_prefill_token_threshold=5000) == "long_prefill_gt_len"

    def test_capture_sizes_and_their_maximum_must_agree(self):
        assert refusal(cudagraph_capture_sizes=(1, 2, 4), max_cudagraph_capture_size=8) == "graph_sizes_conflict"

    def test_blocks_come_in_the_backends_multiples(self):
        assert refusal(block_size=24) == "attn_none"
        assert refusal(config=TINY, device=LAPTOP, block_size=48, kv_cache_memory_bytes=1 << 26) == "attn_none"


class TestDevice:
    def test_bfloat16_asked_of_a_t4_is_refused(self):
        assert refusal(config=TINY, device=T4, dtype="bfloat16") == "bf16_lt_sm80"

    def test_by_default_a_t4_takes_float16_and_says_so(self):
        answer = estimate(ask(TINY, T4))
        assert answer.engine.dtype == "float16"
        assert {reason.rule for reason in answer.warnings} == {"bf16_auto_fallback"}

    def test_an_fp8_cache_needs_sm80(self):
        assert refusal(config=TINY, device=T4, kv_cache_dtype="fp8") == "fp8_kv_triton"

    def test_on_an_a100_an_fp8_cache_needs_flashinfer(self):
        assert "fp8_kv_fa" in warnings(config=LLAMA_3_70B, device=A100, tensor_parallel_size=4, kv_cache_dtype="fp8")


class TestVersions:
    def test_a_release_that_does_not_serve_the_architecture_says_so(self):
        qwen_3 = {**TINY, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 32}
        old = replace(FACTS_085, version=Version(0, 8, 0))
        model = ask(qwen_3).model
        assert model.first is None or model.first <= Version(0, 8, 5)
        newer = replace(model, first=Version(0, 8, 4))
        answer = estimate(replace(ask(qwen_3, facts=old), model=newer))
        assert (answer.verdict, answer.reasons[0].rule) == ("refused", "arch_unsupported")

    def test_float32_checkpoints_become_sixteen_bit(self):
        config = {**TINY, "torch_dtype": "float32"}
        assert estimate(ask(config, facts=FACTS_032)).engine.dtype == "bfloat16"
        assert estimate(ask(config, facts=FACTS_085)).engine.dtype == "float16"


@pytest.mark.parametrize(
    "flags",
    [
        {"max_num_seqs": 0},
        {"max_num_batched_tokens": -1},
        {"num_gpu_blocks_override": 0},
        {"pipeline_parallel_size": 10**11},
        {"max_cudagraph_capture_size": 10**12, "max_num_batched_tokens": 10**12},
        {"compilation_config": '{"max_cudagraph_capture_size": 1000000000000}', "max_num_batched_tokens": 10**12},
        {"compilation_config": "{"},
        {"compilation_config": '{"cudagraph_mode": "BANANA"}'},
        {"compilation_config": '{"cudagraph_capture_sizes": ["a"]}'},
        {"compilation_config": '{"cudagraph_capture_sizes": 7}'},
    ],
)
def test_numbers_that_no_release_could_take_name_their_field(flags):
    with pytest.raises(BadInput, match=next(iter(flags))):
        estimate(ask(**flags))
