"""Defaults by version and device, from the tables of vLLM's own releases."""

from planner.core.defaults import resolve
from tests.core.facts import FACTS_019, FACTS_032, FACTS_085
from tests.core.questions import A100, H100, LAPTOP, LLAMA_3_70B, TINY, ask


def resolved(**question):
    asked = ask(**question)
    return resolve(asked.args, model=asked.model, gpu=asked.gpu, facts=asked.facts)


def test_an_h100_takes_the_large_batch():
    answer = resolved(device=H100)
    assert (answer.max_num_batched_tokens, answer.max_num_seqs) == (8192, 1024)


def test_an_a100_takes_the_small_batch_whatever_its_memory():
    answer = resolved(device=A100)
    assert (answer.max_num_batched_tokens, answer.max_num_seqs) == (2048, 256)


def test_offline_use_batches_more():
    assert resolved(device=H100, usage="offline").max_num_batched_tokens == 16384


def test_throughput_mode_doubles_what_was_not_given():
    answer = resolved(device=A100, performance_mode="throughput", max_num_seqs=100)
    assert (answer.max_num_batched_tokens, answer.max_num_seqs) == (4096, 100)


def test_the_cpu_platform_multiplies_by_its_ranks():
    answer = resolved(config=TINY, device=LAPTOP, tensor_parallel_size=2)
    assert (answer.max_num_batched_tokens, answer.max_num_seqs, answer.block_size) == (4096, 256, 128)


def test_the_step_never_exceeds_what_all_sequences_hold():
    assert resolved(device=H100, max_num_seqs=4, max_model_len=512).max_num_batched_tokens == 2048


def test_utilization_went_to_0_92_in_0_20():
    assert resolved(facts=FACTS_032).gpu_memory_utilization == 0.92
    assert resolved(facts=FACTS_019).gpu_memory_utilization == 0.9


def test_auto_is_the_trained_length():
    answer = resolved(max_model_len="auto")
    assert (answer.max_model_len, answer.auto_max_model_len) == (8192, True)


class TestCaptureSizes:
    """Published boots of 0.19 on H100: 51 sizes up to 512 with max_num_seqs 1024."""

    def test_0_19_captures_51_sizes_up_to_512(self):
        sizes = resolved(device=H100, facts=FACTS_019).cudagraph_capture_sizes
        assert (len(sizes), sizes[0], sizes[-1]) == (51, 1, 512)

    def test_0_8_5_captures_every_eighth_up_to_512(self):
        assert len(resolved(facts=FACTS_085).cudagraph_capture_sizes) == 67

    def test_few_sequences_need_few_sizes(self):
        """max_num_seqs 4: the largest is 2 x 4 = 8."""
        assert resolved(device=A100, facts=FACTS_019, max_num_seqs=4).cudagraph_capture_sizes == (1, 2, 4, 8)

    def test_eager_mode_captures_nothing(self):
        answer = resolved(enforce_eager=True)
        assert (answer.cudagraph_mode, answer.cudagraph_capture_sizes) == ("NONE", ())


def test_on_cpu_the_environment_wins_over_the_flag():
    kv = {"config": TINY, "device": LAPTOP, "kv_cache_memory_bytes": 1 << 26}
    two_gib = (("VLLM_CPU_KVCACHE_SPACE", "2"),)
    assert resolved(**kv).kv_cache_memory_bytes == 1 << 26
    assert resolved(**kv, environment=two_gib).kv_cache_memory_bytes == 2 << 30


def test_a_partition_by_hand_replaces_the_even_split():
    split = (("VLLM_PP_LAYER_PARTITION", "39,41"),)
    assert resolved(config=LLAMA_3_70B, pipeline_parallel_size=2).layers_per_stage == (40, 40)
    assert resolved(config=LLAMA_3_70B, pipeline_parallel_size=2, environment=split).layers_per_stage == (39, 41)
