"""What one rank of a pipeline stage is built of."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import filterfalse

from planner.core.decoder import Layer
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.modules import Experts, Module, Table, Tensor
from planner.core.place import Place

PARTS = {
    "self_attn": "attention",
    "attn": "attention",
    "linear_attn": "linear attention",
    "mlp": "MLP",
    "embed_tokens": "embedding",
    "lm_head": "head",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One rank: the model, its place, the different layers of its stage with how often each comes, and its ends."""

    model: Model
    place: Place
    layers: tuple[tuple[Layer, int], ...]
    is_first: bool
    is_last: bool
    by_transformers: bool

    def builds(self, module: Module) -> bool:
        """Whether the modelling code that serves this release has the module."""
        return is_built(module, by_transformers=self.by_transformers)

    def end_modules(self) -> Iterator[Module]:
        """A tied head is the embedding where both are; alone on the last stage it brings a copy of it."""
        ends = self.model.decoder.ends
        yield from filterfalse(_is_tied, ends.every)
        if self.is_first:
            yield from ends.first
        elif self.is_last and self.model.tie_word_embeddings:
            yield from (module for module in ends.first if self.by_transformers or isinstance(module, Table))
        if self.is_last:
            yield from filterfalse(_is_tied, ends.last)


def _is_tied(module: Module) -> bool:
    return isinstance(module, Table) and module.tied


def rank_of(model: Model, layout: Layout, pp_stage: int, place: Place) -> Rank:
    """Return what the ranks of a stage are built of."""
    by_transformers = model.is_served_by_transformers(place.version)
    everywhere = model.decoder.both_ends_everywhere and not by_transformers
    return Rank(
        model=model,
        place=place,
        layers=layers_of_stage(model, layout, pp_stage),
        is_first=everywhere or layout.is_first(pp_stage),
        is_last=everywhere or layout.is_last(pp_stage),
        by_transformers=by_transformers,
    )


def layers_of_stage(model: Model, layout: Layout, pp_stage: int) -> tuple[tuple[Layer, int], ...]:
    """Return each different layer of a stage with how often it comes, in order of appearance."""
    start = sum(layout.layers_per_stage[:pp_stage])
    held = model.layers[start : start + layout.layers_per_stage[pp_stage]]
    counts = Counter(id(layer) for layer in held)
    different = {id(layer): layer for layer in held}
    return tuple((layer, counts[identity]) for identity, layer in different.items())


def is_built(module: Module, *, by_transformers: bool) -> bool:
    """Whether vLLM's own modelling code, or the Transformers backend, has a module."""
    return module.served in ("", "transformers" if by_transformers else "vllm")


def is_buffer(module: Module) -> bool:
    """Whether a module is not trained."""
    return isinstance(module, Tensor) and module.is_buffer


def part_of(module: Module) -> str:
    """Return the part of a model that a module belongs to, in words."""
    if isinstance(module, Experts):
        return "experts"
    name = module.name
    if "norm" in name and isinstance(module, Tensor) and not module.is_buffer:
        return name if name.startswith(("final", "embedding")) else "norms"
    if name.endswith(".scales") and is_buffer(module):
        return "KV scales"
    first = name.partition(".")[0]
    return PARTS.get(first, first if "." in name else name)
