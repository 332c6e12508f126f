"""The document as text for a terminal: the verdict sentence first, then a table, reasons and what would help."""

import textwrap
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from planner.core.errors import PlanningError
from planner.core.units import in_gib, in_words

WIDTH = 110
TERM_LABELS = {
    "weights": "weights",
    "activation": "activation peak",
    "non_torch": "non-torch",
    "cuda_graphs": "CUDA graphs",
    "kv_cache": "KV cache",
    "outside_budget": "outside the budget",
}
LEVELS = {"refuse": "Refused", "does_not_fit": "Does not fit", "warn": "Note", "unknown": "Not known"}

Document = Mapping[str, Any]


def answer_text(document: Document, *, why: bool = False) -> str:
    """Return the answer as lines; `why` adds each term's formula, source and evidence."""
    return "\n".join(_lines(document, why)) + "\n"


def error_text(error: PlanningError) -> str:
    """Return one line: the field, what is wrong, and the fix."""
    return f"{error.field}: {error.message} Fix: {error.fix}"


def error_document(error: PlanningError) -> dict[str, Any]:
    """Return a fault of the question as JSON-ready data."""
    return {"error": {"field": error.field, "message": error.message, "fix": error.fix}}


def _lines(document: Document, why: bool) -> Iterator[str]:
    yield document["summary"]
    yield from _asked(document)
    for reason in document["reasons"]:
        yield from _reason(reason)
    yield from _ranks(document["ranks"], why)
    if document["verdict"] == "fits":
        yield from _what_it_holds(document)
    for warning in document["warnings"]:
        yield from _reason(warning)
    yield from _help(document["help"])


def _asked(document: Document) -> Iterator[str]:
    model, gpu, engine = document["model"], document["gpu"], document["engine"]
    if model and gpu and engine:
        newest = " (newest known; later ones are assumed alike)" if engine["assumed_newest"] else ""
        yield f"{model['name']} on {gpu['name']}, vLLM {engine['version']}{newest}"


def _reason(reason: Document) -> Iterator[str]:
    yield ""
    label = LEVELS.get(reason["level"], reason["level"])
    yield from _wrapped(f"{label} ({reason['rule']}): {reason['message']}", "")
    if reason["remedy"]:
        yield from _wrapped(f"Remedy: {reason['remedy']}", "  ")


def _ranks(ranks: list[Document], why: bool) -> Iterator[str]:
    """One table for each run of ranks that hold the same."""
    for _, alike in groupby(ranks, key=lambda rank: (rank["pp_stage"], rank["terms"])):
        group = list(alike)
        first = group[0]
        names = f"Rank {first['rank']}" if len(group) == 1 else f"Ranks {first['rank']}–{group[-1]['rank']}"
        yield ""
        yield f"{names}: {in_gib(first['requested_bytes'])} requested of {in_gib(first['total_bytes'])}"
        for term in first["terms"]:
            yield from _term(term, why)


def _term(term: Document, why: bool) -> Iterator[str]:
    label = TERM_LABELS.get(term["name"], term["name"])
    place = "" if term["inside_budget"] else "  (outside)"
    yield f"  {label:<20}{in_gib(term['bytes']):>12}   {_span(term)}{place}".rstrip()
    if why:
        yield from _wrapped(f"= {term['formula']}", "      ")
        yield from _wrapped(f"source: {term['source']}", "      ")
        if term["evidence"]:
            yield from _wrapped(f"boots: {', '.join(term['evidence'][:12])}", "      ")
        if term["note"]:
            yield from _wrapped(term["note"], "      ")


def _span(term: Document) -> str:
    if term["low_bytes"] == term["high_bytes"]:
        return "exact"
    return f"{in_gib(term['low_bytes']).removesuffix(' GiB')}–{in_gib(term['high_bytes'])}"


def _what_it_holds(document: Document) -> Iterator[str]:
    yield ""
    yield from _kv_cache(document["kv_cache"], document["engine"]["max_model_len"])
    yield from _capacity(document["capacity"])
    if document["slack"]:
        yield f"\nUnder load: {document['slack']['sentence']}"


def _kv_cache(cache: Document, max_model_len: int) -> Iterator[str]:
    yield (
        f"KV cache: {cache['num_gpu_blocks']:,} blocks of {cache['block_size']} tokens = {cache['tokens']:,} tokens "
        f"({cache['low_tokens']:,}–{cache['high_tokens']:,}); "
        f"{cache['max_concurrency']:.2f} requests of {max_model_len:,} tokens at once"
    )
    yield (
        f"          {cache['bytes_per_token']:,} bytes a token, {cache['bytes_per_token_per_rank']:,} a rank; "
        f"a full sequence {in_words(cache['bytes_per_token'] * max_model_len)}"
    )


def _capacity(capacity: Document) -> Iterator[str]:
    mix = capacity["mix"]
    if not mix:
        return
    span = f"{mix['low_requests']:,}–{mix['high_requests']:,}"
    yield f"          of the request mix {mix['requests_at_once']:,} at once ({span})"
    if mix["burst"]:
        fate = f"{mix['burst_running']:,} run, {mix['burst_waiting']:,} wait"
        yield f"          of {mix['burst']:,} that come together {fate}"


def _help(changes: list[Document] | None) -> Iterator[str]:
    if changes is None:
        return
    yield "\nWhat one flag would change:" if changes else "\nNo single flag would change it."
    for change in changes:
        yield f"  {change['label']}: {change['requests_now']:,} → {change['requests_at_once']:,} requests at once"
        yield from _wrapped(change["note"], "      ")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False)
