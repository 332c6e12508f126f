"""One KV-cache group: layers with a common block table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.core.kv_spec import KvSpec, RequestBounds, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Layers, by their place in the model, that share a block table; `padding` counts layers that are missing.

    `uniform_type` groups have a page for each layer; the layers of any other have the page of `spec`. `kinds` are the
    different specs with how often each comes.
    """

    layers: tuple[int, ...]
    specs: tuple[KvSpec, ...]
    kinds: tuple[tuple[KvSpec, int], ...]
    spec: KvSpec
    uniform_type: bool
    padding: int = 0

    @property
    def page_bytes(self) -> int:
        """Bytes of one block of all its layers, as vLLM counts the page of the group."""
        return self.stage_bytes if self.uniform_type else self.spec.page_bytes

    @property
    def stage_bytes(self) -> int:
        """Bytes that a block takes for the layers held here, each padded to its stride."""
        return sum(count * spec.block_stride_bytes for spec, count in self.kinds)

    def blocks_per_request(self, max_model_len: int, bounds: RequestBounds) -> int:
        """Return the most blocks that one request takes of this group."""
        if not (self.uniform_type and self.kinds):
            return self.spec.blocks_per_request(max_model_len, bounds)
        return max(spec.blocks_per_request(max_model_len, bounds) for spec, _ in self.kinds)

    def moved(self, start: int) -> "Group":
        """Return it with its layers counted from the model's first, of which the stage's first is number `start`."""
        return replace(self, layers=tuple(start + layer for layer in self.layers)) if start else self

    def within(self, start: int, end: int) -> "Group":
        """Return what a stage holds of it: the layers from `start` up to `end`."""
        if not self.layers or (self.layers[0] >= start and self.layers[-1] < end):
            return self
        held = [(layer, spec) for layer, spec in zip(self.layers, self.specs, strict=True) if start <= layer < end]
        specs = tuple(spec for _, spec in held)
        return replace(self, layers=tuple(layer for layer, _ in held), specs=specs, kinds=counted(specs))


def of_one_spec(layers: Iterable[int], specs: Sequence[KvSpec], *, padding: int = 0) -> Group:
    """Return a group whose layers merge into one spec."""
    kinds = counted(specs)
    return Group(
        layers=tuple(layers), specs=tuple(specs), kinds=kinds, spec=specs[0], uniform_type=False, padding=padding
    )


def of_one_type(layers: Iterable[int], specs: Sequence[KvSpec]) -> Group:
    """Return a group whose layers need the same slots in pages of their own."""
    return Group(layers=tuple(layers), specs=tuple(specs), kinds=counted(specs), spec=specs[0], uniform_type=True)
