"""Windows, layers of different shapes and recurrent states against what vLLM created (fixture by tests/engine)."""

import json
from pathlib import Path

import pytest

from planner.catalog.model_files import find_config
from planner.core.architectures.hybrids import ARCHITECTURES
from tests.engine.golden_hybrids import KEYS, unquantised
from tests.engine.judged import ours
from tests.engine.shapes_hybrid import CATALOGUED, HYBRIDS

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "hybrids_vllm.json").read_text())
NOT_IN_THAT_RELEASE = {"BambaForCausalLM"}


@pytest.mark.parametrize("name", [*HYBRIDS, *CATALOGUED])
def test_every_rank_takes_and_caches_what_vllm_created(name):
    config = HYBRIDS.get(name) or unquantised(find_config(name))
    for _, tp, pp, rank, *expected in (line for line in GOLDEN["answers"] if line[0] == name):
        planned = ours(config, tp=tp, pp=pp, rank=rank)
        keys = ("refused",) if "refused" in planned else KEYS
        assert [planned[key] for key in keys] == expected, f"TP {tp}, PP {pp}, rank {rank}"


def test_the_vectors_cover_every_planned_architecture():
    judged = {config["architectures"][0] for config in HYBRIDS.values()}
    assert set(ARCHITECTURES) - judged == NOT_IN_THAT_RELEASE
