"""Which boots become questions, and why the others stand aside."""

import pytest

from planner.core.units import bytes_from_gib
from tests.accuracy.cases import case_of


def test_a_boot_that_states_model_gpu_and_version_is_answered():
    case = case_of()
    assert (case.standing, case.assumed) == ("answered", False)
    assert case.question.gpu.total_bytes == bytes_from_gib(79.19)
    assert case.question.args.gpu_memory_utilization == 0.95


@pytest.mark.parametrize(
    ("facts", "standing"),
    [
        ({"model": ""}, "not_stated"),
        ({"gpu": ""}, "not_stated"),
        ({"vllm": "main 2a4dbe2"}, "not_stated"),
        ({"tp": None, "gpus": 4}, "not_stated"),
        ({"vllm": "0.7.3"}, "older"),
        ({"vllm": "0.8.5", "engine_core": "V0"}, "older"),
        ({"sleep_mode": True}, "out_of_scope"),
        ({"shared_gpu": True}, "out_of_scope"),
        ({"gpu": "MI300X"}, "out_of_scope"),
        ({"model": "nobody/knows-this-7b"}, "unknown"),
        ({"gpu": "Voodoo 3"}, "unknown"),
        ({"gpu": "Voodoo 3", "assumed": frozenset({"gpu"})}, "not_stated"),
    ],
)
def test_why_a_boot_is_not_asked(facts, standing):
    case = case_of(**facts)
    assert case.standing == standing
    assert case.why
    assert case.question is None


def test_an_inferred_version_is_answered_and_marked():
    case = case_of(assumed=frozenset({"vllm"}))
    assert (case.standing, case.assumed) == ("answered", True)


def test_memory_free_at_start_goes_into_the_question():
    assert case_of(free_at_start_gib=(60.87,)).question.free_bytes == bytes_from_gib(60.87)


def test_a_quantised_tuning_is_told_by_its_name():
    case = case_of(model="RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic")
    assert (case.standing, case.assumed) == ("answered", False)
    assert case.question.model.quantization.method == "compressed-tensors"


def test_a_plain_checkpoint_may_be_quantised_at_load():
    case = case_of(quantization="fp8")
    assert case.question.model.quantization is None
    assert case.question.args.quantization == "fp8"


def test_what_decides_is_named_where_the_planner_does_not_know():
    assert case_of(model="nobody/knows-this-7b").key == "model"
