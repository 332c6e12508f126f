"""The weights of every planned family against the parameters that vLLM itself created (fixture by tests/engine)."""

import json
from pathlib import Path

import pytest

from tests.engine.judged import ours
from tests.engine.shapes_hybrid import WINDOWS

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "weights_vllm.json").read_text())
CONFIGS = dict(GOLDEN["configs"])


@pytest.mark.parametrize("name", CONFIGS)
def test_every_rank_takes_the_bytes_that_vllm_created(name):
    for _, tp, pp, rank, *expected in (line for line in GOLDEN["answers"] if line[0] == name):
        planned = ours(CONFIGS[name], tp=tp, pp=pp, rank=rank)
        keys = ("refused",) if "refused" in planned else ("parameter_bytes", "buffer_bytes", "max_model_len")
        assert [planned[key] for key in keys] == expected, f"TP {tp}, PP {pp}, rank {rank}"


def test_the_vectors_cover_every_planned_architecture():
    from planner.core.families import FAMILIES

    judged = {config["architectures"][0] for config in (*CONFIGS.values(), *WINDOWS.values())}
    served = {name for name, family in FAMILIES.items() if not family.last}
    assert served - judged == {"ChatGLMForConditionalGeneration"}, "the same class as ChatGLMModel"
