"""What would help: one flag changed at a time, each re-planned in full and ranked by the requests it holds at once."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from planner.core.capacity import requests_at_once
from planner.core.engine import EngineArgs
from planner.core.errors import PlanningError
from planner.core.estimate import Estimate, Question, estimate
from planner.core.memory_rules import free_at_start_bytes, largest_utilization

CAREFUL_UTILIZATION = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed flag and what the plan then holds; `gain` is the ratio of requests at once."""

    flag: str
    value: str
    label: str
    requests_at_once: int
    requests_now: int
    tokens: int
    gain: float
    note: str
    args: EngineArgs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    flag: str
    value: int | float | str | bool
    note: str

    @property
    def label(self) -> str:
        name = f"--{self.flag.replace('_', '-')}"
        return name if self.value is True else f"{name} {self.value}"


def what_would_help(question: Question, answer: Estimate) -> tuple[Change, ...]:
    """Return one-flag changes that alter how many requests run at once, the best first.

    The yardstick is the question's own mix, or requests of full length when no mix is given. A change that vLLM would
    refuse, or that does not boot, is left out.
    """
    now = _held(answer)
    changes = [
        change for candidate in _candidates(question, answer) if (change := _try(question, candidate, now)) is not None
    ]
    return tuple(sorted(changes, key=lambda change: change.requests_at_once, reverse=True))


def _try(question: Question, candidate: _Candidate, now: int) -> Change | None:
    changed: dict[str, Any] = {candidate.flag: candidate.value}
    args = replace(question.args, **changed)
    try:
        answer = estimate(replace(question, args=args))
    except PlanningError:
        return None
    if answer.verdict != "fits" or answer.kv_cache is None:
        return None
    then = _held(answer)
    if then == now:
        return None
    return Change(
        flag=candidate.flag,
        value=str(candidate.value),
        label=candidate.label,
        requests_at_once=then,
        requests_now=now,
        tokens=answer.kv_cache.tokens,
        gain=then / now if now else float(then),
        note=candidate.note,
        args=args,
    )


def _held(answer: Estimate) -> int:
    """Requests at once, 0 for a plan that does not boot."""
    if answer.verdict != "fits" or answer.capacity is None or answer.kv_cache is None:
        return 0
    if answer.capacity.mix is not None:
        return answer.capacity.mix.requests_at_once
    return requests_at_once(answer.kv_cache.pool, answer.kv_cache.max_model_len).requests


def _candidates(question: Question, answer: Estimate) -> Iterator[_Candidate]:
    yield from _cache_dtype(question, answer)
    yield from _lengths(answer)
    yield from _parallel(question, answer)
    if not question.gpu.is_cpu:
        yield from _utilization(question, answer)
        yield from _batch(answer)


def _cache_dtype(question: Question, answer: Estimate) -> Iterator[_Candidate]:
    if answer.engine.kv_element_bytes > 1:
        note = "half the bytes a token; check answers on your own prompts"
        yield _Candidate(flag="kv_cache_dtype", value="fp8", note=note)


def _lengths(answer: Estimate) -> Iterator[_Candidate]:
    longest = answer.engine.max_model_len
    refused = next((reason for reason in answer.reasons if reason.rule == "kv_one_request"), None)
    if refused is not None and answer.kv_cache is not None:
        fitting = max(0, answer.kv_cache.num_gpu_blocks - 1) * answer.kv_cache.block_size
        yield _Candidate(flag="max_model_len", value=fitting, note="the longest request that fits")
    elif longest >= 2048:
        yield _Candidate(
            flag="max_model_len", value=longest // 2, note="shorter requests; the tokens held stay the same"
        )


def _parallel(question: Question, answer: Estimate) -> Iterator[_Candidate]:
    tp, others = answer.engine.tensor_parallel_size, answer.layout.gpus // answer.engine.tensor_parallel_size
    if question.gpu_count is None or 2 * tp * others <= question.gpu_count:
        yield _Candidate(
            flag="tensor_parallel_size", value=2 * tp, note=f"{2 * tp * others} GPUs in place of {tp * others}"
        )
    if tp > 1:
        yield _Candidate(
            flag="tensor_parallel_size", value=tp // 2, note=f"{tp * others // 2} GPUs in place of {tp * others}"
        )


def _utilization(question: Question, answer: Estimate) -> Iterator[_Candidate]:
    now = answer.engine.gpu_memory_utilization
    if any(reason.rule == "free_memory" for reason in answer.reasons):
        free = free_at_start_bytes(question.gpu, answer.layout, question.facts, question.free_bytes)
        most = largest_utilization(question.gpu, free)
        yield _Candidate(flag="gpu_memory_utilization", value=most, note="what is free at start")
        return
    if answer.engine.kv_cache_memory_bytes is not None:
        return
    if now < CAREFUL_UTILIZATION:
        note = "takes from the slack outside the budget: load-test it"
        yield _Candidate(flag="gpu_memory_utilization", value=CAREFUL_UTILIZATION, note=note)
    lower = round(now - 0.05, 2)
    if lower > 0:
        yield _Candidate(flag="gpu_memory_utilization", value=lower, note="more slack outside the budget")


def _batch(answer: Estimate) -> Iterator[_Candidate]:
    engine, capacity = answer.engine, answer.capacity
    if engine.max_num_batched_tokens > 2048:
        note = "a smaller profiling pass; long prompts take more steps"
        yield _Candidate(flag="max_num_batched_tokens", value=max(2048, engine.max_num_seqs), note=note)
    if capacity is not None and capacity.suggested_max_num_seqs < engine.max_num_seqs:
        note = "KV tokens / p95 tokens of a request: a smaller sampler, fewer graphs, no preemption"
        yield _Candidate(flag="max_num_seqs", value=capacity.suggested_max_num_seqs, note=note)
    if not engine.enforce_eager:
        yield _Candidate(flag="enforce_eager", value=True, note="no CUDA graphs: slower decoding")
