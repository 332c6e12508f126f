"""One boot scored; the figures are those of t025 and t028."""

import pytest

from planner.core.units import GIB, bytes_from_gib
from tests.accuracy.cases import score_of


def test_predicted_and_logged_memory_of_a_boot_agree_within_two_hundredths():
    figure = score_of().available_kv
    assert figure.measured_bytes == bytes_from_gib(58.11)
    assert abs(figure.error_bytes) < 0.02 * GIB
    assert figure.low_bytes < figure.predicted_bytes < figure.high_bytes


def test_the_allocator_gives_the_logged_blocks_tokens_and_concurrency():
    assert score_of().allocator_exact


@pytest.mark.parametrize("wrong", [{"num_gpu_blocks": 29800}, {"kv_tokens": 480000}, {"max_concurrency": 58.2}])
def test_the_allocator_check_can_fail(wrong):
    assert score_of(**wrong).allocator_exact is False


def test_of_a_list_per_stage_the_one_that_binds_is_compared():
    score = score_of(
        gpus=4,
        pp=4,
        available_kv_gib=(69.8, 70.83, 70.83, 68.89),
        activation_gib=(1.1, 1.05, 1.05, 2.01),
        kv_tokens=2257264,
        num_gpu_blocks=141079,
        max_concurrency=275.54,
    )
    assert score.available_kv.measured_bytes == bytes_from_gib(68.89)
    assert score.activation.measured_bytes == bytes_from_gib(2.01)
    assert score.allocator_exact


def test_a_lone_figure_under_pipeline_parallelism_is_the_first_rank_s():
    score = score_of(gpus=4, pp=4, available_kv_gib=(69.8,))
    assert abs(score.available_kv.predicted_bytes - 69.8 * GIB) < 0.1 * GIB
    assert score.allocator_exact is None


def test_blocks_alone_state_the_memory_to_a_block():
    # 29751 blocks x 16 tokens x 131072 B = 58.107 GiB
    score = score_of(available_kv_gib=())
    assert score.available_kv.measured_bytes == pytest.approx(29751 * 16 * 131072, abs=GIB / 1e6)


def test_weights_are_compared_with_what_the_log_calls_model_loading():
    score = score_of(model="Qwen/Qwen2.5-7B-Instruct", weights_gib=(14.25,), non_torch_gib=(0.24,))
    assert abs(score.weights.error_bytes) < 0.01 * GIB
    assert abs(score.non_torch.error_bytes) < 0.02 * GIB


def test_a_boot_short_of_free_memory_is_foreseen():
    score = score_of(outcome="refused", failure="free_memory", free_at_start_gib=(60.87,), available_kv_gib=())
    assert (score.stopped, score.predicted_stop) == (True, True)


def test_a_refusal_that_is_not_about_memory_is_not_scored():
    assert score_of(outcome="refused", failure="data_parallel_rank").stopped is None


@pytest.mark.parametrize("outcome", ["hung", "crashed", "unclear"])
def test_an_end_that_says_nothing_about_memory_is_not_scored(outcome):
    assert score_of(outcome=outcome).stopped is None


def test_a_good_boot_is_no_alarm():
    assert (score_of().stopped, score_of().predicted_stop) == (False, False)
