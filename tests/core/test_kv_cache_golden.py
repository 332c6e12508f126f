"""Groups, blocks, logged figures and refusals against the planners of thirty vLLM releases."""

import json
from bisect import bisect_right
from pathlib import Path

import pytest

from planner.catalog import engine_facts
from planner.core.engine import Version
from tests.core.cache_questions import agree, answer_of, told

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "blocks_vllm.json").read_text())


def in_force(answers, release):
    """Return the answer that this release gave."""
    firsts = [Version.parse(first) for first, _ in answers]
    return answers[bisect_right(firsts, Version.parse(release)) - 1][1]


@pytest.mark.parametrize("release", GOLDEN["releases"])
def test_the_allocator_is_that_of_the_release(release):
    facts = engine_facts(release)
    for question, answers in GOLDEN["rows"]:
        theirs = in_force(answers, release)
        if theirs is None or (question.get("auto") and not facts.auto_max_model_len):
            continue
        ours = told(answer_of(question, facts))
        assert agree(ours, theirs, facts), (question, ours, theirs)


@pytest.mark.parametrize("release", GOLDEN["releases"])
def test_each_release_was_asked_all_that_it_has_words_for(release):
    """0.8.5 knows full attention and windows alone; the newest can say everything but what older ones kept."""
    answered = sum(in_force(answers, release) is not None for _, answers in GOLDEN["rows"])
    assert answered > len(GOLDEN["rows"]) * (0.9 if Version.parse(release) >= Version(0, 29) else 0.25)
