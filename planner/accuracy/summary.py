"""Scores summed up: errors, intervals, exactness and refusals, whole and by term, architecture, GPU and version."""

from collections.abc import Callable, Sequence
from typing import Any

from planner.accuracy.baseline import Looked, by_key, look_up
from planner.accuracy.cases import Case
from planner.accuracy.rates import Rate, quantile
from planner.accuracy.scores import TERMS, Figure, Score
from planner.core.units import gib

Sized = tuple[Figure, int]  # a figure and the bytes of the GPU it belongs to


def summary(cases: Sequence[Case], scores: Sequence[Score]) -> dict[str, Any]:
    """Return the whole account of `cases`, of which `scores` could be answered.

    The headline is over boots that state model, GPU and version; those that only let them be inferred are counted
    apart under `inferred`.
    """
    stated = [score for score in scores if not score.case.assumed]
    looked = look_up(stated)
    missed = [case for case in cases if case.standing == "unknown"]
    return {
        **_block(stated, looked, missed),
        "by_term": {name: _errors(_sized(stated, get)) for name, get in TERMS.items()},
        "by_architecture": _split(stated, looked, missed, architecture_of),
        "by_gpu": _split(stated, looked, missed, gpu_of),
        "by_version": _split(stated, looked, missed, version_of),
        "inferred": _block([score for score in scores if score.case.assumed], (), ()),
        "boots": _boots(cases),
    }


def architecture_of(score: Score) -> str:
    """Return the architecture a score belongs to."""
    return score.case.question.model.architecture if score.case.question else ""


def gpu_of(score: Score) -> str:
    """Return the slug of the GPU a score belongs to."""
    return score.case.question.gpu.slug if score.case.question else ""


def version_of(score: Score) -> str:
    """Return the vLLM version a score belongs to."""
    return str(score.case.question.facts.version) if score.case.question else ""


def _block(scores: Sequence[Score], looked: Sequence[Looked], missed: Sequence[Case]) -> dict[str, Any]:
    exact = [score.allocator_exact for score in scores if score.allocator_exact is not None]
    return {
        "available_kv": _errors(_sized(scores, TERMS["available_kv"])),
        "allocator": {"n": len(exact), "exact": sum(exact), "wilson": Rate(hits=sum(exact), n=len(exact)).bounds},
        "refusals": _refusals(scores),
        "unknown": {"n": len(missed), "boots": {case.boot.id: case.why for case in missed}},
        "baseline": _errors([(one.figure, one.score.total_bytes) for one in looked]),
    }


def _split(
    scores: Sequence[Score], looked: Sequence[Looked], missed: Sequence[Case], key: Callable[[Score], str]
) -> dict[str, Any]:
    return {
        name: _block(group, [one for one in looked if key(one.score) == name], ())
        for name, group in by_key(scores, key).items()
    }


def _sized(scores: Sequence[Score], get: Callable[[Score], Figure | None]) -> list[Sized]:
    return [(figure, score.total_bytes) for score in scores if (figure := get(score)) is not None]


def _errors(sized: Sequence[Sized]) -> dict[str, Any]:
    """Errors as shares of GPU memory (median, 95th percentile, bias), coverage with its bounds, and widths."""
    of_gpu = [figure.error_bytes / total for figure, total in sized]
    of_truth = [abs(figure.error_bytes / figure.measured_bytes) for figure, _ in sized if figure.measured_bytes > 0]
    widths = [(figure.high_bytes - figure.low_bytes) / total for figure, total in sized]
    covered = Rate(hits=sum(figure.held for figure, _ in sized), n=len(sized))
    absolute = [abs(error) for error in of_gpu]
    return {
        "n": len(sized),
        "median_abs_share_of_gpu": quantile(absolute, 0.5),
        "p95_abs_share_of_gpu": quantile(absolute, 0.95),
        "median_abs_share_of_kv": quantile(of_truth, 0.5),
        "bias": sum(of_gpu) / len(of_gpu) if of_gpu else None,
        "coverage": covered.share,
        "coverage_wilson": covered.bounds,
        "median_width_share_of_gpu": quantile(widths, 0.5),
        "median_abs_gib": quantile([abs(gib(figure.error_bytes)) for figure, _ in sized], 0.5),
        "p95_abs_gib": quantile([abs(gib(figure.error_bytes)) for figure, _ in sized], 0.95),
    }


def _refusals(scores: Sequence[Score]) -> dict[str, Any]:
    stopped = [score for score in scores if score.stopped]
    booted = [score for score in scores if score.stopped is False]
    found = Rate(hits=sum(score.predicted_stop for score in stopped), n=len(stopped))
    alarms = Rate(hits=sum(score.predicted_stop for score in booted), n=len(booted))
    return {
        "n": found.n,
        "recall": found.share,
        "recall_wilson": found.bounds,
        "false_alarms": alarms.hits,
        "booted": alarms.n,
        "false_alarm_rate": alarms.share,
        "false_alarm_wilson": alarms.bounds,
    }


def _boots(cases: Sequence[Case]) -> dict[str, Any]:
    reasons: dict[str, int] = {}
    for case in cases:
        if case.standing in ("not_stated", "out_of_scope"):
            reason = f"{case.standing.replace('_', ' ')}: {case.why}"
            reasons[reason] = reasons.get(reason, 0) + 1
    return {
        "n": len(cases),
        "answered": sum(case.standing == "answered" for case in cases),
        "aside": dict(sorted(reasons.items(), key=lambda item: -item[1])),
    }
