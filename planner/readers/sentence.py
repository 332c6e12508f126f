"""One line of plain words, "Llama 3 70B on 4 x A100 80GB", as a model, a GPU and how many of them."""

import re
from dataclasses import dataclass

_ON = re.compile(r"\s+(?:on|@)\s+", re.IGNORECASE)
_COUNT_FIRST = re.compile(r"(?P<count>\d{1,3})(?:\s*[x×*]\s*|\s+)(?P<gpu>\S.*)", re.IGNORECASE)
_COUNT_LAST = re.compile(r"(?P<gpu>.*\S)\s*(?:\s[x*]|×)\s*(?P<count>\d{1,3})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants to plan, as they wrote it; "" and None where the line does not say."""

    model: str
    gpu: str
    gpu_count: int | None


def read_sentence(text: str) -> Wish:
    """Return the parts of "MODEL on [N x] GPU"; without an "on", all of it names the model."""
    parts = _ON.split(" ".join(text.split()))
    if len(parts) < 2:
        return Wish(model=parts[0], gpu="", gpu_count=None)
    gpu, count = _gpu_and_count(parts[-1])
    return Wish(model=" on ".join(parts[:-1]), gpu=gpu, gpu_count=count)


def _gpu_and_count(text: str) -> tuple[str, int | None]:
    match = _COUNT_FIRST.fullmatch(text) or _COUNT_LAST.fullmatch(text)
    return (match["gpu"], int(match["count"])) if match else (text, None)
