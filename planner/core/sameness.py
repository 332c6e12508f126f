"""Objects told apart by being themselves, not by what they hold: cheap keys for what was computed from them."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Held = TypeVar("Held")


@dataclass(frozen=True, slots=True, eq=False)
class Same(Generic[Held]):
    """Equal only to one that holds the very same object; while it is kept, so is the object."""

    held: Held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)
