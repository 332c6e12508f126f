"""What a dense decoder is made of: named blocks of parameters, and how tensor parallelism splits each of them."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.core.family import Family, QkNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The dimensions that decide a decoder's parameters, and which optional ones it has."""

    hidden_size: int
    intermediate_size: int
    vocab_size: int
    embedding_size: int
    num_attention_heads: int
    num_kv_heads: int
    head_dim: int
    learned_positions: int
    norms_per_layer: int
    norm_vectors: int
    final_norm: bool
    qkv_bias: bool
    o_bias: bool
    mlp_bias: bool
    qk_norm: QkNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerBlock:
    """Parameters that every layer has, in elements.

    `sharded` is divided by TP; `per_kv_head` comes once for each KV head of a rank (so it is replicated when TP exceeds
    the KV heads); `replicated` is whole on every rank. `served` is "" or the modelling code that has the block:
    vLLM's own ("vllm") or the Transformers backend ("transformers").
    """

    name: str
    sharded: int = 0
    per_kv_head: int = 0
    replicated: int = 0
    served: str = ""

    def elements(self, tensor_parallel_size: int, kv_heads: int) -> int:
        """Return the elements on one rank that holds `kv_heads` KV heads."""
        return self.sharded // tensor_parallel_size + kv_heads * self.per_kv_head + self.replicated


@dataclass(frozen=True, slots=True, kw_only=True)
class EndBlock:
    """Parameters at one end of the model: `vocabulary_width` elements a row of the padded vocabulary, or replicated.

    `end` is "first" (embedding side) or "last" (final norm and head). `tied` marks a head that is the embedding.
    """

    name: str
    end: str
    vocabulary_width: int = 0
    replicated: int = 0
    tied: bool = False
    served: str = ""


def layer_blocks(shape: Shape, family: Family) -> tuple[LayerBlock, ...]:
    """Return the blocks of one layer: attention, MLP, norms, and the rare rest."""
    return (*_attention(shape), *_mlp(shape, family), *_norms(shape))


def _attention(shape: Shape) -> Iterator[LayerBlock]:
    query_width = shape.num_attention_heads * shape.head_dim
    inputs = shape.hidden_size + int(shape.qkv_bias)
    yield LayerBlock(
        name="attention",
        sharded=query_width * inputs + query_width * shape.hidden_size,
        per_kv_head=2 * shape.head_dim * inputs,
        replicated=shape.hidden_size * int(shape.o_bias),
    )


def _mlp(shape: Shape, family: Family) -> Iterator[LayerBlock]:
    width, hidden = shape.intermediate_size, shape.hidden_size
    upward = (2 if family.gated_mlp else 1) * width * (hidden + int(shape.mlp_bias))
    downward_bias = hidden * int(shape.mlp_bias)
    split = LayerBlock(name="MLP", sharded=upward + width * hidden, replicated=downward_bias)
    if not family.mlp_whole_in_transformers:
        yield split
        return
    yield LayerBlock(name="MLP", sharded=split.sharded, replicated=split.replicated, served="vllm")
    yield LayerBlock(name="MLP", replicated=split.sharded + split.replicated, served="transformers")


def _norms(shape: Shape) -> Iterator[LayerBlock]:
    vectors = shape.norms_per_layer * shape.norm_vectors * shape.hidden_size
    query_width = shape.num_attention_heads * shape.head_dim
    sharded, per_kv_head, replicated = {
        QkNorm.NONE: (0, 0, 0),
        QkNorm.HEAD: (0, 0, 2 * shape.head_dim),
        QkNorm.HEAD_AND_BIAS: (0, 0, 4 * shape.head_dim),
        QkNorm.EACH_HEAD: (query_width, shape.head_dim, 0),
        QkNorm.ALL_HEADS: (0, 0, query_width + shape.num_kv_heads * shape.head_dim),
    }[shape.qk_norm]
    yield LayerBlock(
        name="norms",
        sharded=sharded,
        per_kv_head=per_kv_head,
        replicated=vectors + replicated,
    )


def end_blocks(shape: Shape, family: Family, *, tied: bool) -> tuple[EndBlock, ...]:
    """Return the blocks at both ends: embeddings, what projects or normalises them, final norm and head."""
    return (*_embeddings(shape, family), *_outputs(shape, family, tied=tied))


def _embeddings(shape: Shape, family: Family) -> Iterator[EndBlock]:
    yield EndBlock(name="embedding", end="first", vocabulary_width=shape.embedding_size)
    if shape.learned_positions:
        yield EndBlock(name="positions", end="first", replicated=shape.learned_positions * shape.hidden_size)
    if shape.embedding_size != shape.hidden_size:
        projections = 2 * shape.embedding_size * shape.hidden_size
        yield EndBlock(name="embedding projections", end="first", replicated=projections)
    if family.embedding_norm:
        yield EndBlock(name="embedding norm", end="first", replicated=2 * shape.hidden_size)


def _outputs(shape: Shape, family: Family, *, tied: bool) -> Iterator[EndBlock]:
    if shape.final_norm and shape.norm_vectors:
        yield EndBlock(name="final norm", end="last", replicated=shape.norm_vectors * shape.hidden_size)
    yield EndBlock(name="head", end="last", vocabulary_width=shape.embedding_size, tied=tied)
    if family.head_bias and not tied:
        served = "" if family.head_bias_in_transformers else "vllm"
        yield EndBlock(name="head bias", end="last", vocabulary_width=1, served=served)
