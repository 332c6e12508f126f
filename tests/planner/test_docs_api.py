"""What docs/api.md shows, done as it stands there."""

import json
import re
import shlex
from pathlib import Path

import pytest
from django.conf import settings

from planner.api.parsers import LARGEST_BODY_BYTES
from planner.services import catalog_load
from tests.factories import api_of

PAGE = (Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (curl .*?(?:'$|\"$))(?=\n\n|\n    curl|\Z)", PAGE, re.DOTALL | re.MULTILINE)


def test_the_page_has_commands():
    assert len(COMMANDS) == PAGE.count("    curl") == 5


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_is_answered(alice, command):
    catalog_load()
    words = shlex.split(command)
    address = next(word for word in words if word.startswith("$PLANNER")).removeprefix("$PLANNER")
    assert "Authorization: Token $TOKEN" in words
    api = api_of(alice)
    if "-d" in words:
        answer = api.post(address, json.loads(words[words.index("-d") + 1]), format="json")
    else:
        answer = api.get(address)
    assert answer.status_code in {200, 201}, answer.content
    body = answer.json()
    assert body.get("verdict", "fits") == "fits"
    assert body.get("count", 1) or "plans?" in address


def test_the_error_of_the_page_is_the_one_that_is_given(alice):
    shown = json.loads(re.search(r"^    (\{\"type\".*?\]\})$", PAGE, re.DOTALL | re.MULTILINE)[1])
    assert api_of(alice).post("/api/v1/estimate", {"gpu": "x", "gpu_cuont": 4}, format="json").json() == shown


def test_the_limits_of_the_page_are_those_in_force():
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]
    assert (rates["estimate"], rates["write"]) == ("12000/min", "120/min")
    assert "12,000 estimates and 120 writes a minute" in PAGE
    assert LARGEST_BODY_BYTES == 2_000_000
    assert "over 2 MB" in PAGE
