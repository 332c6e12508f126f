"""Non-torch growth: published boots by how ranks are spread, and the exact parts by hand."""

import pytest

from planner.catalog.fitted import fit
from planner.core.allocation import rounding_bytes
from planner.core.non_torch import (
    logits_unaligned,
    mismatch,
    nearest_group,
    non_torch_bytes,
    non_torch_formula,
    runner_buffer_bytes,
)
from planner.core.units import gib
from tests.core.facts import FACTS_032
from tests.core.questions import A100, LLAMA_3_70B
from tests.core.situations import FACTS_011, GRANITE_31_8B, PHI_4, QWEN_3_32B, QWEN_25_7B, situation


@pytest.mark.parametrize(
    ("boot", "logged_gib", "asked"),
    [
        ("t025", 0.25, situation()),
        ("t036", 0.25, situation(PHI_4)),
        ("t015", 0.46, situation(GRANITE_31_8B)),
        ("t027", 0.07, situation(pipeline_parallel_size=2)),
        ("t029", 2.07, situation(tensor_parallel_size=2)),
        ("t030", 2.13, situation(tensor_parallel_size=4)),
        ("t057", 2.13, situation(QWEN_25_7B, tensor_parallel_size=4)),
        ("t097", 0.13, situation(facts=FACTS_011)),
        ("t100", 0.54, situation(QWEN_3_32B, facts=FACTS_011, tensor_parallel_size=2)),
    ],
)
def test_a_published_boot_is_met_within_four_hundredths_of_a_gib(boot, logged_gib, asked):
    grown = non_torch_bytes(asked, fit().non_torch) - rounding_bytes(asked)
    assert gib(grown) == pytest.approx(logged_gib, abs=0.04)


def test_the_second_runner_keeps_sampler_buffers():
    # 1024 sequences x (128256 x 4 B counts + 2 x 4008 words x 4 B masks + 16 KiB bad words and biases) = 574,881,792 B
    asked = situation(facts=FACTS_032)
    assert runner_buffer_bytes(asked) == 1024 * (513_024 + 2 * 16_032 + 16_384)
    assert runner_buffer_bytes(situation()) == 0


def test_only_the_stage_that_samples_keeps_them():
    assert runner_buffer_bytes(situation(facts=FACTS_032, pipeline_parallel_size=2)) == 0
    assert runner_buffer_bytes(situation(facts=FACTS_032, pipeline_parallel_size=2, pp_stage=1)) > 0


def test_logits_of_granite_start_off_the_16_byte_grid():
    # 49155 x 4 B = 196620 B = 12288 x 16 + 12
    assert logits_unaligned(situation(GRANITE_31_8B))
    assert not logits_unaligned(situation())
    assert not logits_unaligned(situation(GRANITE_31_8B, facts=FACTS_011))


def test_all_reduce_is_fused_on_hopper_from_0_17_with_compiled_code_and_one_replica():
    assert situation(tensor_parallel_size=2).spread_over == "fused"
    assert situation(tensor_parallel_size=2, enforce_eager=True).spread_over == "tensor"
    assert situation(tensor_parallel_size=2, data_parallel_size=2).spread_over == "tensor"
    assert situation(tensor_parallel_size=2, facts=FACTS_011).spread_over == "tensor"
    assert situation(LLAMA_3_70B, A100, tensor_parallel_size=4).spread_over == "tensor"
    assert situation(pipeline_parallel_size=2).spread_over == "pipeline"


def test_a_case_without_boots_takes_the_nearest_group_and_says_so_in_its_mismatch():
    asked = situation(LLAMA_3_70B, A100, tensor_parallel_size=4)
    group = nearest_group(asked, fit().non_torch)
    assert group.spread_over == "tensor"
    assert any(mismatch(asked, group))


def test_the_formula_names_every_part():
    formula = non_torch_formula(
        situation(facts=FACTS_032, tensor_parallel_size=2),
        nearest_group(situation(facts=FACTS_032, tensor_parallel_size=2), fit().non_torch),
        fit().non_torch,
    )
    assert "2 ranks x 4,096 hidden" in formula
    assert "sampler buffers of model runner V2" in formula
