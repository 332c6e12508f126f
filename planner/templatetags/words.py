"""Figures in templates: a filter a unit; the arithmetic behind them is the core's."""

from typing import Any

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma

from planner.core import words
from planner.core.units import in_words

register = template.Library()
NOTHING = "–"
_MEASURES = {
    "share": words.share_in_words,
    "bytes": in_words,
    "rate": words.rate_in_words,
    "flops": words.flops_in_words,
}


def _or_nothing(write: Any) -> Any:
    return lambda value: NOTHING if value is None or value == "" else write(value)


register.filter("rate", _or_nothing(words.rate_in_words))
register.filter("flops", _or_nothing(words.flops_in_words))


@register.filter
def gib_up_to(low_bytes: int, high_bytes: int) -> str:
    """A span of memory."""
    return words.range_in_gib(low_bytes, high_bytes)


@register.filter
def count(value: Any) -> str:
    """A number with its thousands apart; a dash where there is none."""
    if value is None or value == "":
        return NOTHING
    return f"{value:,.2f}" if isinstance(value, float) else str(intcomma(value))


@register.filter
def in_unit(value: Any, unit: str) -> str:
    """A value of any kind as its unit asks."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return NOTHING
    if unit in _MEASURES:
        return str(_MEASURES[unit](value))
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or NOTHING
    if unit in {"GiB", "MiB", "GB/s", "TFLOPS"}:
        return f"{value:,} {unit}"
    if unit in {"count", "requests", "blocks", "tokens", "times"}:
        return count(value) + {"tokens": " tokens", "times": "×"}.get(unit, "")
    return str(value).replace("_", " ") if unit == "text" else f"{value:,}" if isinstance(value, int) else str(value)


@register.filter
def signed(difference: float | None, unit: str) -> str:
    """A difference with its sign; nothing where there is none to tell."""
    if not difference:
        return ""
    return words.signed_bytes(difference) if unit == "bytes" else words.signed_count(difference)


@register.filter
def verdict_words(verdict: str) -> str:
    """A verdict as people say it."""
    return verdict.replace("_", " ")


@register.filter
def item(sequence: Any, key: Any) -> Any:
    """An item by position or key, which a template cannot reach with a variable."""
    try:
        return sequence[key]
    except (IndexError, KeyError, TypeError):
        return None
