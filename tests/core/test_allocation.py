"""What PyTorch's allocator adds to weight tensors: by hand, and as "Model loading took" shows it."""

from dataclasses import replace

import pytest

from planner.core.allocation import end_tensors, layer_tensors, rounding_bytes
from planner.core.engine import Version
from planner.core.units import GIB, MIB
from planner.core.weights import rank_weights
from tests.core.facts import FACTS_019
from tests.core.situations import CODE_LLAMA_7B, GRANITE_31_8B, PHI_4, QWEN_25_7B, situation


def test_qwen_25_7b_takes_56_mib_more_than_its_parameters():
    # a layer: QKV 4608 x 3584 x 2 B = 31.5 MiB, gate and up 37888 x 3584 x 2 B = 259 MiB, down 129.5 MiB: each takes
    # the next even MiB (0.5 + 1 + 0.5); the output's 24.5 MiB is split off its 26; 28 layers x 2 MiB
    tensors = [(size / MIB, layers) for size, layers in layer_tensors(situation(QWEN_25_7B)) if size > MIB]
    assert sorted(tensors) == [(24.5, 28), (31.5, 28), (129.5, 28), (259.0, 28)]
    assert rounding_bytes(situation(QWEN_25_7B)) - _ends(QWEN_25_7B) == 56 * MIB


def _ends(config):
    """Both embedding and head of Qwen2.5-7B, 152064 x 3584 x 2 B = 1039.5 MiB, take 1040 MiB."""
    return sum(-size % (2 * MIB) for size in end_tensors(situation(config)) if size > MIB)


@pytest.mark.parametrize(
    ("boot", "logged_gib", "config", "tp"),
    [
        ("t055", 14.25, QWEN_25_7B, 1),
        ("t056", 7.12, QWEN_25_7B, 2),
        ("t057", 3.55, QWEN_25_7B, 4),
        ("t036", 27.39, PHI_4, 1),
        ("t002", 12.56, CODE_LLAMA_7B, 1),
        ("t015", 15.25, GRANITE_31_8B, 1),
    ],
)
def test_parameters_and_rounding_are_what_the_log_calls_model_loading(boot, logged_gib, config, tp):
    asked = situation(config, tensor_parallel_size=tp)
    weights = rank_weights(asked.model, layout=asked.layout, pp_stage=0, dtype="bfloat16", version=Version(0, 19))
    taken = weights.parameter_bytes + weights.buffer_bytes + rounding_bytes(asked)
    assert taken / GIB == pytest.approx(logged_gib, abs=0.0101)


def test_since_0_21_large_tensors_are_never_split():
    # the output matrix of Qwen2.5-7B, 24.5 MiB, now keeps all of its 26 MiB: 1.5 MiB more a layer
    later = situation(QWEN_25_7B, facts=replace(FACTS_019, version=Version(0, 21, 0)))
    assert rounding_bytes(later) - rounding_bytes(situation(QWEN_25_7B)) == 28 * 1.5 * MIB


def test_a_pipeline_stage_rounds_only_what_it_holds():
    whole = rounding_bytes(situation(PHI_4))
    first, last = (rounding_bytes(situation(PHI_4, pipeline_parallel_size=2, pp_stage=stage)) for stage in (0, 1))
    assert first + last == whole
