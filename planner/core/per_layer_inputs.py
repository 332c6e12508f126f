"""Per-layer embeddings (Gemma 3n and 4): a second table that gives each layer its own input for a token."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.core.modules import Module, Table, Tensor, column, norm, replicated


@dataclass(frozen=True, slots=True, kw_only=True)
class PerLayerInputs:
    """`width` elements for each of `layers` layers, from a vocabulary of `vocab_size`."""

    width: int
    layers: int
    vocab_size: int

    def ends(self, hidden: int, prefix: str = "") -> Iterator[Module]:
        """Yield the table and the projection that fill the inputs of all layers at once, with three scalars."""
        everything = self.layers * self.width
        yield Table(name=f"{prefix}embed_tokens_per_layer", rows=self.vocab_size, width=everything)
        projection = f"{prefix}per_layer_model_projection"
        yield column(projection, hidden, ("per_layer_model_projection", everything))
        yield norm(f"{prefix}per_layer_projection_norm", self.width)
        yield Tensor(name="per-layer scalars", elements=3, is_buffer=True)

    def layer(self, hidden: int) -> Iterator[Module]:
        """Yield what a layer does with its input: a gate, a projection back and a norm, whole on every rank."""
        yield replicated("per_layer_input_gate", hidden, self.width)
        yield replicated("per_layer_projection", self.width, hidden)
        yield norm("post_per_layer_input_norm", hidden)
