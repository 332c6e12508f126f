"""The account as a table for people: the terminal's and the document's form of the same rows."""

from collections.abc import Iterator, Sequence
from typing import Any

Row = Sequence[str]
ERROR_COLUMNS = (
    "",
    "n",
    "median error",
    "p95 error",
    "of GPU",
    "p95 of GPU",
    "of KV",
    "bias",
    "held by 5-95 %",
    "Wilson 95 %",
    "interval",
)
MACRO_COLUMNS = ("", "cells", "median of GPU", "p95 of GPU", "of KV", "held by 5-95 %")
_TERMS = {
    "weights": "weights",
    "activation": "peak activation",
    "non_torch": "non-torch growth",
    "cuda_graphs": "CUDA graphs",
    "available_kv": "available KV",
}
_PARTS = {
    "inferred": "model, GPU or version inferred",
    "everything": "stated and inferred together",
    "early": "vLLM 0.8.x",
    "context_only": "tier C (context only, not judged)",
}
_SPLITS = {"kind of cache": "by_kind", "architecture": "by_architecture", "GPU": "by_gpu", "vLLM version": "by_version"}


def as_text(account: dict[str, Any], title: str) -> str:
    """Return the account as aligned text."""
    parts = [title]
    for heading, columns, rows in tables(account):
        parts += ["", heading, *_aligned([columns, *rows])]
    return "\n".join([*parts, "", *sentences(account)])


def as_markdown(account: dict[str, Any]) -> str:
    """Return the account's tables in Markdown."""
    parts = []
    for heading, columns, rows in tables(account):
        rule = ["---" for _ in columns]
        lines = [f"| {' | '.join(row)} |" for row in (columns, rule, *rows)]
        parts += [f"### {heading}", "", *lines, ""]
    return "\n".join([*parts, *(f"- {sentence}" for sentence in sentences(account))])


def tables(account: dict[str, Any]) -> list[tuple[str, Row, list[Row]]]:
    """Return the tables: by term with the baseline, the macro-average, the parts, and KV by what may matter."""
    terms = [error_row(label, account["by_term"][name]) for name, label in _TERMS.items()]
    terms.append(error_row("baseline: available KV", account["baseline"]))
    found: list[tuple[str, Row, list[Row]]] = [
        ("By term: vLLM 0.9 and later, model, GPU and version stated", ERROR_COLUMNS, terms),
        ("Available KV averaged over GPU class x minor version", MACRO_COLUMNS, _macro_rows(account)),
        ("Available KV of the other boots", ERROR_COLUMNS, list(_part_rows(account))),
    ]
    for heading, key in _SPLITS.items():
        rows: list[Row] = []
        for name, block in account[key].items():
            rows += [error_row(_version_name(name), block["available_kv"]), error_row("  baseline", block["baseline"])]
        found.append((f"Available KV by {heading} (stated and inferred)", ERROR_COLUMNS, rows))
    return found


def _version_name(name: str) -> str:
    return name.replace(".0", ".", 1) if name[:2] == "0." and len(name) == 4 else name


def _part_rows(account: dict[str, Any]) -> Iterator[Row]:
    for key, label in _PARTS.items():
        yield error_row(label, account[key]["available_kv"])
        if account[key]["baseline"]["n"]:
            yield error_row("  baseline", account[key]["baseline"])


def _macro_rows(account: dict[str, Any]) -> list[Row]:
    stated, everything = account["macro"], account["everything"]["macro"]
    return [
        _macro_row("planner", stated["cells"], stated["available_kv"]),
        _macro_row("baseline", stated["cells"], stated["baseline"]),
        _macro_row("planner, inferred boots too", everything["cells"], everything["available_kv"]),
        _macro_row("baseline, inferred boots too", everything["cells"], everything["baseline"]),
    ]


def _macro_row(label: str, cells: int, means: dict[str, Any]) -> Row:
    return (
        label,
        str(cells),
        _percent(means["median_abs_share_of_gpu"], 3),
        _percent(means["p95_abs_share_of_gpu"], 3),
        _percent(means["median_abs_share_of_kv"], 2),
        _percent(means["coverage"], 0),
    )


def error_row(label: str, errors: dict[str, Any]) -> Row:
    """Return one row of errors."""
    return (
        label,
        str(errors["n"]),
        _gib(errors["median_abs_gib"]),
        _gib(errors["p95_abs_gib"]),
        _percent(errors["median_abs_share_of_gpu"], 3),
        _percent(errors["p95_abs_share_of_gpu"], 3),
        _percent(errors["median_abs_share_of_kv"], 2),
        _percent(errors["bias"], 3, sign=True),
        _percent(errors["coverage"], 0),
        _bounds(errors["coverage_wilson"]),
        _percent(errors["median_width_share_of_gpu"], 2),
    )


def sentences(account: dict[str, Any]) -> list[str]:
    """Return what is no table: allocator, refusals and misses, boots short of memory later, what is unknown."""
    return [
        *_allocator_sentences(account["allocator"]),
        *_refusal_sentences(account["refusals"]),
        *_load_sentences(account["under_load"]),
        *_unknown_sentences(account["unknown"], account["boots"]),
        _sample_sentence(account["in_sample"]),
    ]


def _allocator_sentences(allocator: dict[str, Any]) -> Iterator[str]:
    kinds = ", ".join(f"{kind} {found['exact']} of {found['n']}" for kind, found in allocator["by_kind"].items())
    yield (
        f"Allocator: from the logged memory, blocks, tokens and concurrency agree to the log's rounding on "
        f"{allocator['exact']} of {allocator['n']} boots (Wilson {_bounds(allocator['wilson'])}): {kinds}."
    )
    if allocator["wrong"]:
        yield "Allocator differs: " + "; ".join(f"{boot} ({kind})" for boot, kind in allocator["wrong"].items()) + "."
    if allocator["set_aside"]:
        reasons = "; ".join(f"{boot}: {why}" for boot, why in allocator["set_aside"].items())
        yield f"Allocator not asked: {reasons}."


def _refusal_sentences(refusals: dict[str, Any]) -> Iterator[str]:
    told = refusals["told"]
    yield (
        f"Refusals and out of memory at boot: {told['foreseen']} of the {told['n']} whose command is given foreseen, "
        f"{_percent(told['recall'], 0)} (Wilson {_bounds(told['recall_wilson'])}); {refusals['foreseen']} of "
        f"{refusals['n']} with those of which only some flags are told, {_percent(refusals['recall'], 0)} "
        f"(Wilson {_bounds(refusals['recall_wilson'])}); false alarms "
        f"{refusals['false_alarms']} of {refusals['booted']} boots that ran, "
        f"{_percent(refusals['false_alarm_rate'], 1)} (Wilson {_bounds(refusals['false_alarm_wilson'])})."
    )
    yield from (f"Missed {boot}: {why}" for boot, why in refusals["misses"].items())
    yield from (f"False alarm {boot}: {why}" for boot, why in refusals["alarms"].items())


def _load_sentences(under_load: dict[str, Any]) -> Iterator[str]:
    boots = "; ".join(f"{boot}: {verdict}" for boot, verdict in under_load["boots"].items())
    yield (
        f"Out of memory under load: {under_load['flagged']} of {under_load['n']} flagged by the slack verdict or "
        f"refused (Wilson {_bounds(under_load['wilson'])}){f' ({boots})' if boots else ''}; so are "
        f"{under_load['flagged_of_those_that_ran']} of {under_load['that_ran']} boots of which no trouble is told."
    )


def _unknown_sentences(unknown: dict[str, Any], boots: dict[str, Any]) -> Iterator[str]:
    keys = "; ".join(f"{key}: {', '.join(ids)}" for key, ids in unknown["by_key"].items())
    yield f"Answered `unknown`: {unknown['n']}{f', by the key that decides: {keys}' if keys else ''}."
    yield (
        f"Answered {boots['answered'] - unknown['n']} of {boots['n']} boots of all tiers. Set aside: "
        + "; ".join(f"{count} {reason}" for reason, count in boots["aside"].items())
        + "."
    )


def _sample_sentence(within: dict[str, Any]) -> str:
    return (
        f"All of the above is out of sample: {within['boots_of_the_fit']} of the boots are behind the fit, each "
        f"predicted by a fit without its model (inside the one campaign) or its source. In sample: n {within['n']}, "
        f"median error {_gib(within['median_abs_gib'])}, held {_percent(within['coverage'], 0)}."
    )


def _aligned(rows: Sequence[Row]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _gib(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} GiB"


def _percent(value: float | None, digits: int, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{100 * value:{'+' if sign else ''}.{digits}f} %"


def _bounds(bounds: Sequence[float] | None) -> str:
    return "-" if bounds is None else f"{100 * bounds[0]:.0f}-{100 * bounds[1]:.0f} %"
