"""The answer as plain data: the one document that the API, the command line and every page's `.json` share."""

from dataclasses import asdict, fields, is_dataclass
from typing import Any

from planner.core import CORE_VERSION
from planner.core.advice import Change
from planner.core.budget import RankBudget
from planner.core.capacity import Capacity
from planner.core.errors import Unknown
from planner.core.estimate import Estimate, KvCache, Question
from planner.core.slack import Slack
from planner.core.terms import Reason, Term

Document = dict[str, Any]


def document(question: Question, answer: Estimate, changes: tuple[Change, ...] | None = None) -> Document:
    """Return the answer as JSON-ready data; `help` is null unless changes are handed in."""
    return {
        "verdict": answer.verdict,
        "summary": answer.summary,
        "core_version": CORE_VERSION,
        "model": _model(question),
        "gpu": _gpu(question),
        "reasons": [_reason(reason) for reason in answer.reasons],
        "warnings": [_reason(reason) for reason in answer.warnings],
        "engine": _engine(question, answer),
        "ranks": [_rank(rank) for rank in answer.ranks],
        "kv_cache": None if answer.kv_cache is None else _kv_cache(answer.kv_cache),
        "capacity": None if answer.capacity is None else _capacity(answer.capacity),
        "slack": None if answer.slack is None else _slack(answer.slack),
        "host": None if answer.host is None else asdict(answer.host),
        "free": None if answer.free is None else asdict(answer.free),
        "help": None if changes is None else [_change(change) for change in changes],
    }


def unknown_document(error: Unknown) -> Document:
    """Return the document of a question we cannot answer: verdict `unknown`, with what decides it and the fix."""
    reason = {
        "rule": "unknown",
        "field": error.field,
        "message": error.message,
        "remedy": error.fix,
        "level": "unknown",
    }
    empty: Document = dict.fromkeys(("model", "gpu", "engine", "kv_cache", "capacity", "slack", "host", "free", "help"))
    return {
        **empty,
        "verdict": "unknown",
        "summary": f"Not known: {error.message}",
        "core_version": CORE_VERSION,
        "reasons": [reason],
        "warnings": [],
        "ranks": [],
    }


def _model(question: Question) -> Document:
    model = question.model
    return {
        "name": model.name,
        "architecture": model.architecture,
        "parameters": model.parameters,
        "layers": model.num_layers,
        "attention_heads": model.num_attention_heads,
        "kv_heads": model.num_kv_heads,
        "head_dim": model.head_dim,
        "dtype": model.dtype,
        "derived_max_model_len": model.derived_max_model_len,
    }


def _gpu(question: Question) -> Document:
    gpu = question.gpu
    return {
        "slug": gpu.slug,
        "name": gpu.name,
        "device_type": gpu.device_type,
        "count": question.gpu_count,
        "total_bytes": gpu.total_bytes,
        "total_low_bytes": gpu.total_low_bytes,
        "total_high_bytes": gpu.total_high_bytes,
    }


def _engine(question: Question, answer: Estimate) -> Document:
    facts = question.facts
    return {"version": str(facts.version), "assumed_newest": facts.assumed_newest, **_plain(answer.engine)}


def _plain(value: Any) -> Any:
    """Values as JSON has them; a set in a fixed order."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, frozenset):
        return sorted(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _reason(reason: Reason) -> Document:
    return asdict(reason)


def _rank(rank: RankBudget) -> Document:
    return {
        "rank": rank.rank,
        "pp_stage": rank.pp_stage,
        "tp_rank": rank.tp_rank,
        "total_bytes": rank.total_bytes,
        "requested_bytes": rank.requested_bytes,
        "terms": [_term(term) for term in rank.terms],
    }


def _term(term: Term) -> Document:
    return {
        "name": term.name,
        "bytes": term.bytes,
        "low_bytes": term.low_bytes,
        "high_bytes": term.high_bytes,
        "exact": term.exact,
        "inside_budget": term.inside_budget,
        "formula": term.formula,
        "source": term.source,
        "evidence": list(term.evidence),
        "note": term.note,
    }


def _kv_cache(cache: KvCache) -> Document:
    return {
        "available_bytes": cache.available.bytes,
        "low_bytes": cache.available.low_bytes,
        "high_bytes": cache.available.high_bytes,
        "bytes_per_token": cache.bytes_per_token,
        "bytes_per_token_per_rank": cache.bytes_per_token_per_rank,
        "bytes_per_block": cache.bytes_per_block,
        "blocks_per_request": cache.blocks_per_request,
        "groups": [asdict(group) for group in cache.groups],
        "block_size": cache.block_size,
        "num_gpu_blocks": cache.num_gpu_blocks,
        "low_blocks": cache.low_blocks,
        "high_blocks": cache.high_blocks,
        "tokens": cache.tokens,
        "low_tokens": cache.low_tokens,
        "high_tokens": cache.high_tokens,
        "max_concurrency": cache.max_concurrency,
        "max_model_len": cache.max_model_len,
        "binding_rank": cache.binding_rank,
        "formula": cache.formula,
        "why": cache.why,
    }


def _capacity(capacity: Capacity) -> Document:
    return asdict(capacity)


def _slack(slack: Slack) -> Document:
    return asdict(slack)


def _change(change: Change) -> Document:
    return {
        "flag": change.flag,
        "value": change.value,
        "label": change.label,
        "requests_at_once": change.requests_at_once,
        "requests_now": change.requests_now,
        "tokens": change.tokens,
        "gain": change.gain,
        "note": change.note,
    }
