"""vLLM 0.32's own configuration code as judge of every default and refusal; see tests/engine/golden_config.py."""

import json
from pathlib import Path

import pytest

from planner import catalog
from planner.core.estimate import Question, case_of
from planner.core.rules import broken_rules
from planner.readers.command import read_fields
from tests.core.questions import gpu
from tests.engine.commands import GPUS

FIXTURE = json.loads((Path(__file__).parents[1] / "fixtures" / "config_vllm.json").read_text())
SIZES, ROWS = FIXTURE["sizes"], FIXTURE["answers"]
FACTS = catalog.engine_facts("0.32.0")
SAME = (
    "dtype",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "enable_chunked_prefill",
    "async_scheduling",
    "enable_prefix_caching",
    "gpu_memory_utilization",
    "mamba_cache_mode",
    "cudagraph_mode",
    "model_runner",
    "max_concurrent_batches",
)


def name_of(row):
    question = row[0]
    flags = " ".join(f"{name}={value}" for name, value in {**question, **question["flags"]}.items() if name != "flags")
    return flags[:150]


def decided_by_backends(asked):
    """Return what is decided only after the configuration: attention within chunks is in no graph."""
    return {"cudagraph_mode": "PIECEWISE"} if asked.traits.chunked else {}


def case(question):
    """Return what the rules look at, of a question of the fixture."""
    name, gib, capability = GPUS[question["gpu"]]
    args = read_fields(
        {**question["flags"], "usage": question.get("usage", "server")},
        version=FACTS.version,
        model=question["model"],
        environment=question.get("environment", {}),
    )
    return case_of(
        Question(
            model=catalog.find_model(question["model"]),
            gpu=gpu(name, gib, gib, gib, tuple(capability)),
            gpu_count=question.get("gpus", 8),
            facts=FACTS,
            args=args,
            fit=catalog.fit(),
        )
    )


TAKEN = [row for row in ROWS if "refused" not in row[1]]
REFUSED = [row for row in ROWS if "refused" in row[1]]


@pytest.mark.parametrize("row", TAKEN, ids=name_of)
def test_flags_come_to_what_vllm_makes_of_them(row):
    question, theirs = row
    asked = case(question)
    ours = {name: getattr(asked.resolved, name) for name in SAME}
    assert ours == {**{name: theirs[name] for name in SAME}, **decided_by_backends(asked)}
    if theirs["cudagraph_mode"] != "NONE":
        assert list(asked.resolved.cudagraph_capture_sizes) == SIZES[theirs["cudagraph_capture_sizes"]]


@pytest.mark.parametrize("row", REFUSED, ids=name_of)
def test_what_vllm_refuses_is_refused_by_the_rule_of_its_message(row):
    question, theirs = row
    named = {rule.id for rule in catalog.rules() if rule.message.search(theirs["text"])}
    assert named & {reason.rule for reason in broken_rules(case(question)) if reason.level == "refuse"}
