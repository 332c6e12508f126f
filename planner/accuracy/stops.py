"""Boots that stopped, and those that ran out of memory later: foreseen or missed, and why."""

from collections.abc import Sequence
from typing import Any

from planner.accuracy.notes import explanations
from planner.accuracy.rates import Rate
from planner.accuracy.scores import Score

WARNED = frozenset({"tight", "at_risk"})


def stops_account(scores: Sequence[Score]) -> dict[str, Any]:
    """Return recall over boots that were refused or ran out of memory, false alarms over those that ran, and misses."""
    stopped = [score for score in scores if score.stopped]
    booted = [score for score in scores if score.stopped is False]
    found = Rate(hits=sum(score.predicted_stop for score in stopped), n=len(stopped))
    told = [score for score in stopped if score.case.boot.command_told or score.case.boot.tier == "A"]
    of_told = Rate(hits=sum(score.predicted_stop for score in told), n=len(told))
    alarms = Rate(hits=sum(score.predicted_stop for score in booted), n=len(booted))
    return {
        "n": found.n,
        "foreseen": found.hits,
        "recall": found.share,
        "recall_wilson": found.bounds,
        "told": {"n": of_told.n, "foreseen": of_told.hits, "recall": of_told.share, "recall_wilson": of_told.bounds},
        "false_alarms": alarms.hits,
        "booted": alarms.n,
        "false_alarm_rate": alarms.share,
        "false_alarm_wilson": alarms.bounds,
        "misses": {score.case.boot.id: _why(score) for score in stopped if not score.predicted_stop},
        "alarms": {score.case.boot.id: _why(score) for score in booted if score.predicted_stop},
    }


def under_load_account(scores: Sequence[Score]) -> dict[str, Any]:
    """Return how many boots that ran out of memory under load were flagged, and how many that ran were flagged too."""
    ran_out = [score for score in scores if score.case.boot.outcome == "out_of_memory_under_load"]
    ran_on = [score for score in scores if score.case.boot.outcome == "booted"]
    flagged = Rate(hits=sum(_is_flagged(score) for score in ran_out), n=len(ran_out))
    also = Rate(hits=sum(_is_flagged(score) for score in ran_on), n=len(ran_on))
    return {
        "n": flagged.n,
        "flagged": flagged.hits,
        "wilson": flagged.bounds,
        "boots": {score.case.boot.id: score.slack_verdict or score.summary for score in ran_out},
        "flagged_of_those_that_ran": also.hits,
        "that_ran": also.n,
    }


def _is_flagged(score: Score) -> bool:
    return score.predicted_stop or score.slack_verdict in WARNED


def _why(score: Score) -> str:
    return explanations().get(score.case.boot.id) or f"not explained yet; the planner says: {score.summary}"
