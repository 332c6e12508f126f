"""The catalog's models that see or hear against the bytes that vLLM itself created (fixture by tests/engine)."""

import json
from pathlib import Path

import pytest

from planner import catalog
from tests.engine.golden_towers import DTYPE, unquantised
from tests.engine.judged import ours

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "towers_vllm.json").read_text())
NAMES = sorted({line[0] for line in GOLDEN["answers"]})


@pytest.mark.parametrize("name", NAMES)
def test_every_rank_takes_the_bytes_that_vllm_created(name):
    config = unquantised(catalog.find_config(name))
    for _, tp, pp, rank, *expected in (line for line in GOLDEN["answers"] if line[0] == name):
        planned = ours(config, tp=tp, pp=pp, rank=rank, dtype=DTYPE)
        keys = ("refused",) if "refused" in planned else ("parameter_bytes", "buffer_bytes")
        assert [planned[key] for key in keys] == expected, f"TP {tp}, PP {pp}, rank {rank}"
