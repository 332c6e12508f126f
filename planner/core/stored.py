"""The tensors of one module on one rank: as vLLM creates them, and as they stay once loading has ended."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stored:
    """Sizes in bytes, a tensor each; `kept` differs from `created` where a kernel wants another form of the weights."""

    created: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def created_bytes(self) -> int:
        """What `create_weights` allocates."""
        return sum(self.created)

    @property
    def kept_bytes(self) -> int:
        """What stays: "Model loading took" is measured then."""
        return sum(self.kept)


def stored(created: Iterable[int], kept: Iterable[int] | None = None) -> Stored:
    """Return both lists without empty tensors; what is kept is what was created unless said otherwise."""
    first = tuple(size for size in created if size)
    return Stored(first, first if kept is None else tuple(size for size in kept if size))
