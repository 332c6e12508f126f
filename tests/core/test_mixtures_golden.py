"""Experts and latent attention against what vLLM created and cached (fixture by tests/engine)."""

import json
from pathlib import Path

import pytest

from planner.core.architectures.mixtures import ARCHITECTURES
from tests.engine.golden_hybrids import KEYS
from tests.engine.golden_mixtures import catalogued
from tests.engine.judged import ours
from tests.engine.shapes_moe import BUILT_ON_A_GPU, CATALOGUED, CATALOGUED_ON_A_GPU, MIXTURES

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "mixtures_vllm.json").read_text())
SMALL = MIXTURES | BUILT_ON_A_GPU
UNASKED = {name for name, architecture in ARCHITECTURES.items() if not architecture.checked}


@pytest.mark.parametrize("name", [*SMALL, *CATALOGUED, *CATALOGUED_ON_A_GPU])
def test_every_rank_takes_and_caches_what_vllm_created(name):
    config = SMALL.get(name) or catalogued([name])[name]
    for _, tp, pp, rank, *expected in (line for line in GOLDEN["answers"] if line[0] == name):
        planned = ours(config, tp=tp, pp=pp, rank=rank, dtype=config.get("torch_dtype") or "bfloat16")
        keys = ("refused",) if "refused" in planned else KEYS
        assert [planned[key] for key in keys] == expected, f"TP {tp}, PP {pp}, rank {rank}"


def test_the_vectors_cover_every_planned_architecture():
    judged = {config["architectures"][0] for config in SMALL.values()}
    assert set(ARCHITECTURES) - judged - UNASKED == {"ExaoneMoeForCausalLM", "MiMoV2ForCausalLM"}, "the same classes"
