"""Names as logs and people write them, matched to the catalog's: models, GPUs and versions."""

import re
from collections.abc import Callable, Iterable, Sequence

from planner.core.errors import BadInput, PlanningError, Unknown
from planner.core.hardware import Gpu
from planner.core.units import gib

_RELEASE = re.compile(r"v?(\d+\.\d+)(?:\.(\d+|x))?((?:\.?(?:rc|dev|post|a|b)\d+)*)(?=$|[\s(+/-])")
_IGNORED_WORDS = frozenset(
    {"nvidia", "geforce", "gpu", "blackwell", "server", "workstation", "edition", "ada", "laptop"}
)
_DATED_MAIN = re.compile(r"main .*\((\d{4}-\d{2})[^)]*\)")
_RELEASE_AFTER = {"2026-01": "0.15.0", "2026-04": "0.19.1", "2026-08": "0.28.0"}  # as published logs of those months
_HOW_MANY = re.compile(r"^\s*\d+\s*[x×*]\s*|\s*(?<![a-z])[x×*]\s*\d+\s*$", re.IGNORECASE)
_SIZE_WORD = re.compile(r"\d+gb?")
_VARIANTS = re.compile(r"-(instruct|chat|it|base|hf)$")


def release_of(text: str) -> str:
    """Return the release that a version text starts with (`0.27.1 (NGC 26.08)`, `0.19.x`), or "" for none.

    A development branch with its month (`main 2a4dbe2 (2026-01)`) is taken for the release that followed.
    """
    dated = _DATED_MAIN.match(text.strip())
    if dated:
        return _RELEASE_AFTER.get(dated[1], "")
    match = _RELEASE.match(text.strip())
    if match is None:
        return ""
    minor, patch, suffix = match.groups()
    return f"{minor}.{'0' if patch in (None, 'x') else patch}{suffix}"


def resolve_model(name: str, names: Sequence[str], find: Callable[[str], str]) -> tuple[str, bool]:
    """Return the catalog's name of a model, and whether it is only a relative: another tuning of the same model.

    With or without organisation, upper or lower case, `Meta-` in front or not; a name that contains a model's name is
    taken for a tuning of it. Raises Unknown.
    """
    try:
        return find(name), False
    except PlanningError as fault:
        missing = fault
    for spelling, is_relative in ((_plain, False), (_relative, True)):
        for candidate in names:
            if spelling(candidate) == spelling(name):
                return find(candidate), is_relative
    contained = [candidate for candidate in names if _is_within(_relative(candidate), _relative(name))]
    if not contained:
        raise missing
    return find(max(contained, key=lambda candidate: len(_relative(candidate)))), True


def is_variant_of(name: str, base: str) -> bool:
    """Whether a name is a model's own with the words of a quantisation after it."""
    return _plain(name).startswith(_plain(base))


def _is_within(part: str, name: str) -> bool:
    return re.search(rf"(?<![a-z0-9.]){re.escape(part)}(?![a-z0-9.])", name) is not None


def _plain(name: str) -> str:
    return name.lower().rsplit("/", 1)[-1].removeprefix("meta-").removesuffix("-hf")


def _relative(name: str) -> str:
    return _VARIANTS.sub("", _plain(name))


def resolve_gpu(
    text: str, total_gib: float | None, gpus: Iterable[Gpu], find: Callable[[str], Gpu]
) -> tuple[Gpu, bool]:
    """Return the catalog's GPU for a name as logs write it, and whether its memory size had to be guessed.

    The logged total decides between sizes of one card, SXM is taken before PCIe. Raises Unknown when nothing in the
    catalog has the name's words.
    """
    first = re.split(r"\s*\(| \+ | / ", text)[0]  # of unlike cards the one that is named first
    name = _HOW_MANY.sub("", first)
    missing: PlanningError
    try:
        return find(name), False
    except (Unknown, BadInput) as fault:
        missing = fault
    wanted = _words(name)
    candidates = [gpu for gpu in gpus if not gpu.is_cpu and wanted and wanted <= _words(f"{gpu.slug} {gpu.name}")]
    if not candidates:
        raise missing
    size = total_gib or _named_size(name)
    found = min(candidates, key=lambda gpu: (_apart(gpu, size), "pcie" in gpu.slug))
    return found, size is None and len({round(gib(gpu.total_bytes)) for gpu in candidates}) > 1


def _apart(gpu: Gpu, size_gib: float | None) -> int:
    """Whole GiB between two totals: drivers differ by less, sizes of a card by more."""
    return 0 if size_gib is None else round(abs(gib(gpu.total_bytes) - size_gib))


def _words(name: str) -> frozenset[str]:
    words = re.split(r"[^a-z0-9]+", name.lower())
    return frozenset(word for word in words if word and word not in _IGNORED_WORDS and not _SIZE_WORD.fullmatch(word))


def _named_size(name: str) -> float | None:
    match = re.search(r"(\d+) ?GB", name, re.IGNORECASE)
    return float(match[1]) * 0.99 if match else None
