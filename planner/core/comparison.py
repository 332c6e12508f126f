"""Plan documents side by side: which rows differ, by how much, and every memory term against the first plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]

TERM_NAMES = ("weights", "activation", "non_torch", "cuda_graphs", "kv_cache", "outside_budget")

_DEPLOYMENT = (
    ("model", ("model", "name"), "text"),
    ("gpu", ("gpu", "name"), "text"),
    ("gpu_count", ("gpu", "count"), "count"),
    ("vllm_version", ("engine", "version"), "text"),
)
_ANSWER = (
    ("verdict", ("verdict",), "text"),
    ("available KV cache", ("kv_cache", "available_bytes"), "bytes"),
    ("KV bytes a token and rank", ("kv_cache", "bytes_per_token_per_rank"), "bytes"),
    ("KV blocks", ("kv_cache", "num_gpu_blocks"), "count"),
    ("KV cache size", ("kv_cache", "tokens"), "tokens"),
    ("maximum concurrency", ("kv_cache", "max_concurrency"), "times"),
    ("requests at max_model_len", ("capacity", "requests_at_max_model_len", "requests"), "count"),
    ("requests of the mix at once", ("capacity", "mix", "requests_at_once"), "count"),
    ("suggested max_num_seqs", ("capacity", "suggested_max_num_seqs"), "count"),
    ("slack under load", ("slack", "verdict"), "text"),
    ("left outside the budget", ("slack", "outside_bytes"), "bytes"),
)
_NOT_FLAGS = frozenset({"version", "assumed_newest", "given"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One fact of every plan; `differences` are signed, against the first plan, and None where there is no number.

    `unit` is `text`, `count`, `tokens`, `bytes` or `times`; `section` is `deployment`, `engine` or `answer`.
    """

    section: str
    name: str
    unit: str
    values: tuple[Any, ...]
    differences: tuple[float | None, ...]

    @property
    def differs(self) -> bool:
        """Whether any plan departs from the first."""
        return any(value != self.values[0] for value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Rows, those that differ first; memory terms of each plan's tightest rank; the largest total among those ranks."""

    rows: tuple[Row, ...]
    terms: tuple[Row, ...]
    scale_bytes: int


def compare(documents: Sequence[Document]) -> Comparison:
    """Return what differs between plan documents; sizes in bytes, differences against the first document."""
    rows = (
        *_rows("deployment", _DEPLOYMENT, documents),
        *_engine_rows(documents),
        *_rows("answer", _ANSWER, documents),
    )
    ranks = [tightest_rank(document) for document in documents]
    return Comparison(
        rows=tuple(sorted(rows, key=lambda row: not row.differs)),
        terms=tuple(_row("memory", name, "bytes", [_term_bytes(rank, name) for rank in ranks]) for name in TERM_NAMES),
        scale_bytes=max((rank["total_bytes"] for rank in ranks if rank), default=0),
    )


def tightest_rank(document: Document) -> Document | None:
    """Return the rank that bounds the KV cache (else the first one), or None when nothing was sized."""
    ranks = document.get("ranks") or ()
    binding = _at(document, ("kv_cache", "binding_rank"))
    return next((rank for rank in ranks if rank["rank"] == binding), ranks[0] if ranks else None)


def _engine_rows(documents: Sequence[Document]) -> list[Row]:
    flags = dict.fromkeys(flag for document in documents for flag in _at(document, ("engine",)) or ())
    return [
        _row("engine", flag, _flag_unit(flag), [_at(document, ("engine", flag)) for document in documents])
        for flag in flags
        if flag not in _NOT_FLAGS
    ]


def _flag_unit(flag: str) -> str:
    return "bytes" if flag.endswith("_bytes") else "value"


def _rows(section: str, fields: Sequence[tuple[str, tuple[str, ...], str]], documents: Sequence[Document]) -> list[Row]:
    return [_row(section, name, unit, [_at(document, path) for document in documents]) for name, path, unit in fields]


def _row(section: str, name: str, unit: str, values: Sequence[Any]) -> Row:
    differences = tuple(_difference(value, values[0]) for value in values)
    return Row(section=section, name=name, unit=unit, values=tuple(values), differences=differences)


def _difference(value: Any, first: Any) -> float | None:
    return value - first if _is_number(value) and _is_number(first) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _term_bytes(rank: Document | None, name: str) -> int | None:
    terms = rank["terms"] if rank else ()
    return next((term["bytes"] for term in terms if term["name"] == name), None)


def _at(document: Document, path: Sequence[str]) -> Any:
    value: Any = document
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
