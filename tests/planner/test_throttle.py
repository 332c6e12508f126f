"""How often a person may ask and write."""

from datetime import UTC, datetime

import time_machine
from django.conf import settings

from planner.api.throttles import ScopedCountThrottle
from tests.factories import a_model, api_of

NOON = datetime(2026, 12, 1, 12, 0, 30, tzinfo=UTC)


def rates(**changes):
    return {**settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"], **changes}


def ask(api):
    return api.post("/api/v1/estimate", {}, format="json")


def test_the_rate_admits_a_hundred_estimates_a_second_for_as_long_as_one_likes():
    requests, seconds = ScopedCountThrottle.parse_rate(None, rates()["estimate"])
    assert requests / seconds >= 100


def test_beyond_the_rate_the_answer_says_how_long_to_wait(alice, bob, monkeypatch):
    monkeypatch.setattr(ScopedCountThrottle, "THROTTLE_RATES", rates(estimate="3/min"))
    api = api_of(alice)
    with time_machine.travel(NOON, tick=False) as clock:
        assert [ask(api).status_code for _ in range(4)] == [400, 400, 400, 429]
        answer = ask(api)
        assert answer.headers["Retry-After"] == "30"
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert "Retry-After" in answer.json()["fix"]
        assert ask(api_of(bob)).status_code == 400, "another person has a count of their own"
        clock.shift(30)
        assert ask(api).status_code == 400, "a new window has opened"


def test_writing_is_counted_and_reading_is_not(alice, monkeypatch):
    monkeypatch.setattr(ScopedCountThrottle, "THROTTLE_RATES", rates(write="1/min"))
    a_model(alice)
    api = api_of(alice)
    with time_machine.travel(NOON, tick=False):
        assert [api.get("/api/v1/models").status_code for _ in range(3)] == [200] * 3
        assert [api.post("/api/v1/hosts", {}, format="json").status_code for _ in range(2)] == [400, 429]
