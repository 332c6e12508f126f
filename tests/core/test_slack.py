"""The risk of running out of memory under load after a clean boot."""

import pytest

from planner.core.estimate import estimate
from planner.core.units import GIB
from tests.core.facts import FACTS_019, FACTS_032
from tests.core.questions import A100, H100, LAPTOP, LLAMA_3_70B, TINY, ask


def slack(**question):
    return estimate(ask(**question)).slack


def test_eight_gib_outside_are_ample_for_four_ranks():
    """79.15 GiB at 0.90 leave 7.9 outside; context and NCCL hold about 1.5, and the worst case needs under 7.9."""
    answer = slack(config=LLAMA_3_70B, device=A100, tensor_parallel_size=4, gpu_memory_utilization=0.9)
    assert answer.verdict == "ample"
    assert answer.outside_bytes == pytest.approx(7.915 * GIB, abs=GIB // 100)


def test_nothing_outside_is_a_risk_and_names_what_lowers_it():
    answer = slack(gpu_memory_utilization=0.993, facts=FACTS_032)
    assert answer.verdict == "at_risk"
    assert any(remedy.startswith("--gpu-memory-utilization") for remedy in answer.lowers_it)


def test_the_suggested_utilization_lowers_the_risk():
    lower = slack(gpu_memory_utilization=0.993).lowers_it[0].split()[1]
    assert slack(gpu_memory_utilization=float(lower)).verdict == "ample"


def test_graphs_before_0_20_are_paid_for_outside():
    items = {item.name: item for item in slack(facts=FACTS_019).items}
    graphs = next(item for name, item in items.items() if "outside the budget" in name)
    assert graphs.bytes > GIB // 2


def test_more_ranks_hold_more_before_vllm_starts():
    assert slack(device=H100, tensor_parallel_size=2).needed_bytes > slack(device=H100).needed_bytes


def test_fp8_on_an_a100_brings_flashinfers_workspace():
    names = [
        item.name for item in slack(config=LLAMA_3_70B, device=A100, tensor_parallel_size=4, kv_cache_dtype="fp8").items
    ]
    assert "FlashInfer workspace" in names


def test_host_memory_has_no_such_verdict():
    assert slack(config=TINY, device=LAPTOP, kv_cache_memory_bytes=GIB) is None
