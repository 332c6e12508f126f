"""The account as a table for people: the terminal's and the document's form of the same rows."""

from collections.abc import Sequence
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
_TERMS = {
    "weights": "weights",
    "activation": "peak activation",
    "non_torch": "non-torch growth",
    "cuda_graphs": "CUDA graphs",
    "available_kv": "available KV",
}


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
    """Return the tables: by term with the baseline, then KV by architecture, GPU and version."""
    terms = [error_row(label, account["by_term"][name]) for name, label in _TERMS.items()]
    terms.append(error_row("baseline: available KV", account["baseline"]))
    found: list[tuple[str, Row, list[Row]]] = [("By term", ERROR_COLUMNS, terms)]
    for heading, key in (("architecture", "by_architecture"), ("GPU", "by_gpu"), ("vLLM version", "by_version")):
        rows: list[Row] = []
        for name, block in account[key].items():
            rows += [error_row(name, block["available_kv"]), error_row("  baseline", block["baseline"])]
        found.append((f"Available KV by {heading}", ERROR_COLUMNS, rows))
    return found


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
    """Return what is no table: allocator, refusals, misses, inferred boots, boots set aside."""
    allocator, refusals, unknown = account["allocator"], account["refusals"], account["unknown"]
    inferred, boots = account["inferred"]["available_kv"], account["boots"]
    lines = [
        f"Allocator: from the logged memory, blocks, tokens and concurrency agree to the log's rounding on "
        f"{allocator['exact']} of {allocator['n']} boots (Wilson {_bounds(allocator['wilson'])}).",
        f"Refusals: {_percent(refusals['recall'], 0)} of {refusals['n']} foreseen "
        f"(Wilson {_bounds(refusals['recall_wilson'])}); false alarms {refusals['false_alarms']} of "
        f"{refusals['booted']} boots (Wilson {_bounds(refusals['false_alarm_wilson'])}).",
        f"Unknown though in scope: {unknown['n']}"
        + "".join(f"; {boot}: {why}" for boot, why in unknown["boots"].items())
        + ".",
        f"Boots whose model, GPU or version is only inferred, counted apart: {inferred['n']}, median error "
        f"{_gib(inferred['median_abs_gib'])}, held {_percent(inferred['coverage'], 0)}.",
        f"Answered {boots['answered']} of {boots['n']} boots. Set aside: "
        + "; ".join(f"{count} {reason}" for reason, count in boots["aside"].items())
        + ".",
    ]
    within = account["in_sample"]
    lines.append(
        f"All of the above is out of sample: {within['boots_of_the_fit']} of the boots are behind the fit, each "
        f"predicted by a fit without its model (inside the one campaign) or its source. In sample: n {within['n']}, "
        f"median error {_gib(within['median_abs_gib'])}, held {_percent(within['coverage'], 0)}."
    )
    return lines


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
