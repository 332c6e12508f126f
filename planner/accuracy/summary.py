"""Scores summed up: errors, intervals, exactness and refusals, whole and by term, architecture, GPU and version."""

from collections.abc import Callable, Sequence
from typing import Any

from planner.accuracy.baseline import Looked, by_key, look_up
from planner.accuracy.cases import Case
from planner.accuracy.notes import set_aside
from planner.accuracy.rates import Rate, quantile
from planner.accuracy.scores import TERMS, Figure, Score
from planner.accuracy.stops import stops_account, under_load_account
from planner.core.engine import Version
from planner.core.model import Model
from planner.core.units import gib

Sized = tuple[Figure, int]  # a figure and the bytes of the GPU it belongs to
HEADLINE_SINCE = Version(0, 9)
JUDGED_TIERS = frozenset({"A", "B", ""})
KINDS = ("full", "windows", "hybrid", "latent")


def summary(cases: Sequence[Case], scores: Sequence[Score]) -> dict[str, Any]:
    """Return the whole account of `cases`, of which `scores` could be answered.

    Judged are boots of tiers A and B. The headline is over those of 0.9 and later whose source states model, GPU and
    version; `everything` adds those where one of them is deduced (`inferred`). 0.8.x is counted apart (`early`).
    """
    judged = [score for score in scores if score.case.boot.tier in JUDGED_TIERS]
    late = [score for score in judged if _version(score) >= HEADLINE_SINCE]
    stated = [score for score in late if not score.case.assumed]
    looked = look_up(late)
    looked_stated = [one for one in looked if not one.score.case.assumed]
    return {
        **_block(stated, looked_stated),
        "macro": _macro(stated, looked_stated),
        "by_term": {name: _errors(_sized(stated, get)) for name, get in TERMS.items()},
        "by_architecture": _split(late, looked, architecture_of),
        "by_gpu": _split(late, looked, gpu_of),
        "by_version": _split(late, looked, version_of),
        "by_kind": _split(late, looked, kind_of),
        "inferred": _block([s for s in late if s.case.assumed], [one for one in looked if one.score.case.assumed]),
        "everything": {**_block(late, looked), "macro": _macro(late, looked)},
        "early": _block([s for s in judged if _version(s) < HEADLINE_SINCE], ()),
        "context_only": _block([score for score in scores if score.case.boot.tier not in JUDGED_TIERS], ()),
        "allocator": _allocator(judged),
        "refusals": stops_account(judged),
        "under_load": under_load_account(judged),
        "unknown": _unknown(cases),
        "boots": _boots(cases),
    }


def _version(score: Score) -> Version:
    assert score.case.question is not None  # noqa: S101  # only answered cases are scored
    return score.case.question.facts.version


def architecture_of(score: Score) -> str:
    """Return the architecture a score belongs to."""
    return score.case.question.model.architecture if score.case.question else ""


def gpu_of(score: Score) -> str:
    """Return the slug of the GPU a score belongs to."""
    return score.case.question.gpu.slug if score.case.question else ""


def version_of(score: Score) -> str:
    """Return the minor vLLM version a score belongs to, so written that versions sort."""
    version = _version(score)
    return f"{version.major}.{version.minor:02d}"


def kind_of(score: Score) -> str:
    """Return what the model caches: full attention, windows, states beside keys (hybrid) or latents."""
    return cache_kind(score.case.question.model) if score.case.question else ""


def cache_kind(model: Model) -> str:
    """Return the kind of a model's caches as far as vLLM's planner treats them differently."""
    traits = model.traits
    found = {
        "hybrid": traits.has_states,
        "latent": traits.latent,
        "windows": traits.windowed or traits.chunked,
    }
    return next((kind for kind, holds in found.items() if holds), "full")


def _block(scores: Sequence[Score], looked: Sequence[Looked]) -> dict[str, Any]:
    return {
        "available_kv": _errors(_sized(scores, TERMS["available_kv"])),
        "baseline": _errors([(one.figure, one.score.total_bytes) for one in looked]),
    }


def _split(scores: Sequence[Score], looked: Sequence[Looked], key: Callable[[Score], str]) -> dict[str, Any]:
    blocks = {
        name: _block(group, [o for o in looked if key(o.score) == name]) for name, group in by_key(scores, key).items()
    }
    return {name: block for name, block in blocks.items() if block["available_kv"]["n"]}


def _macro(scores: Sequence[Score], looked: Sequence[Looked]) -> dict[str, Any]:
    """Errors averaged over cells of GPU class and minor version, each cell counting once."""
    cells = [block for block in _split(scores, looked, _cell).values() if block["baseline"]["n"]]
    names = ("median_abs_share_of_gpu", "p95_abs_share_of_gpu", "median_abs_share_of_kv", "coverage")
    return {
        "cells": len(cells),
        "available_kv": {name: _mean([cell["available_kv"][name] for cell in cells]) for name in names},
        "baseline": {name: _mean([cell["baseline"][name] for cell in cells]) for name in names},
    }


def _cell(score: Score) -> str:
    assert score.case.question is not None  # noqa: S101  # only answered cases are scored
    capability = score.case.question.gpu.compute_capability
    return f"{capability} {version_of(score)}"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _allocator(scores: Sequence[Score]) -> dict[str, Any]:
    checked = [score for score in scores if score.allocator_exact is not None]
    wrong = {score.case.boot.id: kind_of(score) for score in checked if not score.allocator_exact}
    kinds = {kind: [score for score in checked if kind_of(score) == kind] for kind in KINDS}
    exact = len(checked) - len(wrong)
    return {
        "n": len(checked),
        "exact": exact,
        "wilson": Rate(hits=exact, n=len(checked)).bounds,
        "by_kind": {
            k: {"n": len(group), "exact": sum(bool(s.allocator_exact) for s in group)} for k, group in kinds.items()
        },
        "wrong": wrong,
        "set_aside": {s.case.boot.id: why for s in scores if (why := set_aside("allocator").get(s.case.boot.id))},
    }


def _unknown(cases: Sequence[Case]) -> dict[str, Any]:
    missed = [case for case in cases if case.standing == "unknown" and case.boot.tier in JUDGED_TIERS]
    keys = sorted({case.key for case in missed})
    return {
        "n": len(missed),
        "boots": {case.boot.id: case.why for case in missed},
        "by_key": {key: [case.boot.id for case in missed if case.key == key] for key in keys},
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


def _boots(cases: Sequence[Case]) -> dict[str, Any]:
    reasons: dict[str, int] = {}
    for case in cases:
        if case.standing in ("not_stated", "older", "out_of_scope"):
            reason = case.why if case.standing == "older" else f"{case.standing.replace('_', ' ')}: {case.why}"
            reasons[reason] = reasons.get(reason, 0) + 1
    return {
        "n": len(cases),
        "answered": sum(case.standing == "answered" for case in cases),
        "aside": dict(sorted(reasons.items(), key=lambda item: -item[1])),
    }
