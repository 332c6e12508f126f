"""What a technique for the KV cache does to a plan: one sentence, figures without and with it, and its source."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure without and with a technique; `unit` is `requests`, `share` (of 1), `bytes` or `blocks`."""

    label: str
    unit: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """A technique and its effect here.

    `since` is the first release that has it ("" where none has), `usable` whether this plan's release and device do;
    `nearest` is what vLLM has in its place. `effect` is one sentence with this plan's figures.
    """

    name: str
    title: str
    in_vllm: bool
    since: str
    usable: bool
    effect: str
    measures: tuple[Measure, ...]
    caveat: str
    nearest: str
    source: str


def requests_in_words(count: int) -> str:
    """Return a number of requests with its noun."""
    return f"{count:,} request{'' if count == 1 else 's'}"
