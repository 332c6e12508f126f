"""Figures in templates, each with its unit."""

from collections.abc import Sequence

from django import template

from planner.core.units import gib, in_gib, in_words
from planner.core.words import parameters_in_words, range_in_gib

register = template.Library()

TERM_LABELS = {
    "weights": "weights",
    "activation": "activations",
    "non_torch": "non-torch",
    "cuda_graphs": "CUDA graphs",
    "kv_cache": "KV cache",
    "outside_budget": "outside the budget",
}
SIGNS = {"fits": "✓", "does_not_fit": "✗", "refused": "✗", "unknown": "?", "ample": "✓", "tight": "!", "at_risk": "✗"}
TAGS = {"ample": "ok", "tight": "warn", "at_risk": "no", "fits": "ok", "unknown": "warn"}

register.filter("in_gib", in_gib)
register.filter("in_words", in_words)
register.filter("parameters", parameters_in_words)


@register.filter
def bare_gib(size_bytes: int) -> str:
    """GiB with one decimal and no unit, where the unit stands beside."""
    return f"{gib(size_bytes):.1f}"


@register.filter
def counted(number: float) -> str:
    """A count with its thousands parted."""
    return f"{number:,}"


@register.filter
def spaced(name: str) -> str:
    """A name of the code as words."""
    return name.replace("_", " ")


@register.filter
def as_percent(share: float) -> str:
    """A share in percent with one decimal."""
    return f"{share:.1%}"


@register.filter
def span_in_gib(interval: dict[str, int]) -> str:
    """The 5-95 % interval of a term or of the cache."""
    return range_in_gib(interval["low_bytes"], interval["high_bytes"])


@register.filter
def term_label(name: str) -> str:
    """A term as people call it."""
    return TERM_LABELS.get(name, name)


@register.filter
def sign(verdict: str) -> str:
    """The sign that goes with a verdict's colour."""
    return SIGNS.get(verdict, "!")


@register.filter
def verdict_tag(verdict: str) -> str:
    """The kind of tag a verdict wears."""
    return TAGS.get(verdict, "no")


@register.filter
def flagged(name: str) -> str:
    """A flag as it is typed; an environment variable keeps its name."""
    return name if name.isupper() else f"--{name.replace('_', '-')}"


@register.filter
def listed(values: Sequence[object]) -> str:
    """A list in one line."""
    return ", ".join(map(str, values))
