"""An answer as every page shows it: the sentence first, then drawings and tables over the one document."""

import re
from collections.abc import Mapping
from typing import Any

from planner.pages.drawing import context_curve, rank_groups

_LEAD = re.compile(r"(\w[\w ]*?)([^\w ].*)", re.DOTALL)


def sheet_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `planner/_answer.html` draws of a document."""
    lead, rest = _in_two(document["summary"])
    capacity, cache = document["capacity"], document["kv_cache"]
    groups = rank_groups(document["ranks"])
    return {
        "document": document,
        "lead": lead,
        "rest": rest,
        "title": _title(document, lead),
        "groups": groups,
        "evidence": _evidence(document),
        "curve": context_curve(capacity["curve"]) if capacity else None,
        "binding_group": next((g for g in groups if cache and cache["binding_rank"] in g.numbers), None),
    }


def _in_two(summary: str) -> tuple[str, str]:
    """The first words carry the colour of the verdict."""
    match = _LEAD.fullmatch(summary)
    return (match[1], match[2]) if match else (summary, "")


def _title(document: Mapping[str, Any], lead: str) -> str:
    model, gpu, engine = document["model"], document["gpu"], document["engine"]
    if not model or not gpu or not engine:
        return lead
    return f"{lead} · {model['name'].rpartition('/')[2]} on {gpu['name']}"


def _evidence(document: Mapping[str, Any]) -> list[str]:
    return sorted({boot for rank in document["ranks"] for term in rank["terms"] for boot in term["evidence"]})
