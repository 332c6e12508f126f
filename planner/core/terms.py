"""Terms of a budget and reasons of a verdict: every figure carries where it came from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A central value with its 5-95 % interval, in bytes."""

    low_bytes: int
    bytes: int
    high_bytes: int

    @property
    def exact(self) -> bool:
        """Whether nothing about the value is uncertain."""
        return self.low_bytes == self.high_bytes

    def shifted(self, offset_bytes: int) -> "Interval":
        """Return the interval moved by an exact number of bytes."""
        return Interval(
            low_bytes=self.low_bytes + offset_bytes,
            bytes=self.bytes + offset_bytes,
            high_bytes=self.high_bytes + offset_bytes,
        )


def exactly(size_bytes: int) -> Interval:
    """Return the interval of a value that is known to the byte."""
    return Interval(low_bytes=size_bytes, bytes=size_bytes, high_bytes=size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One share of a GPU's memory: bytes, interval, the formula with its numbers, its source and its evidence.

    `evidence` holds ids of the boots that a measured term rests on; an exact term has low = bytes = high.
    """

    name: str
    bytes: int
    low_bytes: int
    high_bytes: int
    formula: str
    source: str
    inside_budget: bool
    evidence: tuple[str, ...] = ()
    note: str = ""

    @property
    def exact(self) -> bool:
        """Whether the term is known to the byte."""
        return self.low_bytes == self.high_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why vLLM refuses, why a plan does not fit, or what to beware of; `rule` is an id of the rules table.

    `level` is `refuse` (vLLM stops with an error of validation), `does_not_fit` (too little memory) or `warn`.
    """

    rule: str
    field: str
    message: str
    remedy: str
    level: str = "refuse"
