"""The bytes of weights that each rank loads, exactly as vLLM creates them."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.core.engine import Version
from planner.core.kv_cache import kv_heads_per_rank
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.terms import Reason
from planner.core.units import DTYPE_BYTES, round_up
from planner.core.weight_blocks import EndBlock, LayerBlock

VOCABULARY_MULTIPLE = 64
SCALE_BYTES_PER_LAYER = 4 * 4
SCALAR_BYTES = 2
LAYER_NAMES = frozenset({"attention", "MLP", "norms"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWeights:
    """What one rank holds after loading: trained parameters, and buffers (RoPE table, scales) beside them.

    `parts` are (name, bytes) and sum to both; `formula` has the numbers of this rank filled in.
    """

    parameter_bytes: int
    buffer_bytes: int
    formula: str
    parts: tuple[tuple[str, int], ...]


def padded_vocabulary(vocab_size: int) -> int:
    """Return the rows vLLM gives an embedding (`VocabParallelEmbedding`: a multiple of 64)."""
    return round_up(vocab_size, VOCABULARY_MULTIPLE)


def rank_weights(
    model: Model, *, layout: Layout, pp_stage: int, dtype: str, version: Version | None = None
) -> RankWeights:
    """Return the weights of one rank of a pipeline stage, all tensor-parallel ranks of which hold the same.

    The vocabulary is padded to 64 and split over TP, KV heads are replicated when TP exceeds them, norms and biases of
    row-parallel layers are whole everywhere; a tied head costs nothing beside the embedding and a copy of it on another
    stage. `version` matters for the few families that changed hands (None: the newest). Source: vLLM
    `layers.vocab_parallel_embedding`, `layers.linear`, `model_executor.models` (0.8.5 to 0.32).
    """
    rank = _rank(model, layout, pp_stage, dtype, version)
    parts = [*_layer_parts(rank), *_end_parts(rank)]
    scalars = rank.layers * model.layer_scalars * SCALAR_BYTES
    buffers = _buffers(rank)
    return RankWeights(
        parameter_bytes=sum(part.elements for part in parts) * rank.element_bytes + scalars,
        buffer_bytes=sum(size for _, size in buffers),
        formula=_formula(rank, parts, (*_scalars(scalars), *buffers)),
        parts=(*((part.name, part.elements * rank.element_bytes) for part in parts), *_scalars(scalars), *buffers),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rank:
    model: Model
    tp: int
    kv_heads: int
    layers: int
    is_first: bool
    is_last: bool
    dtype: str
    element_bytes: int
    by_transformers: bool

    def builds(self, served: str) -> bool:
        return served in ("", "transformers" if self.by_transformers else "vllm")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    name: str
    elements: int
    text: str


def _rank(model: Model, layout: Layout, pp_stage: int, dtype: str, version: Version | None) -> _Rank:
    by_transformers = model.is_served_by_transformers(version)
    everywhere = model.both_ends_everywhere and not by_transformers
    return _Rank(
        model=model,
        tp=layout.tensor_parallel_size,
        kv_heads=kv_heads_per_rank(model.num_kv_heads, layout.tensor_parallel_size),
        layers=layout.layers_per_stage[pp_stage],
        is_first=everywhere or layout.is_first(pp_stage),
        is_last=everywhere or layout.is_last(pp_stage),
        dtype=dtype,
        element_bytes=DTYPE_BYTES[dtype],
        by_transformers=by_transformers,
    )


def _layer_parts(rank: _Rank) -> Iterator[_Part]:
    for block in rank.model.layer_blocks:
        elements = block.elements(rank.tp, rank.kv_heads)
        if elements and rank.builds(block.served):
            yield _Part(name=block.name, elements=rank.layers * elements, text=_block_text(block, rank))


def _block_text(block: LayerBlock, rank: _Rank) -> str:
    heads = f"{rank.kv_heads} KV head{'s' if rank.kv_heads > 1 else ''} x {block.per_kv_head:,}"
    terms = (
        (block.sharded, _over(f"{block.sharded:,}", rank.tp)),
        (block.per_kv_head, heads),
        (block.replicated, f"{block.replicated:,}"),
    )
    return f"{block.name} {' + '.join(text for size, text in terms if size)}"


def _over(text: str, tensor_parallel_size: int) -> str:
    return f"{text}/{tensor_parallel_size}" if tensor_parallel_size > 1 else text


def _end_parts(rank: _Rank) -> Iterator[_Part]:
    for block in rank.model.end_blocks:
        copies = _copies(block, rank)
        if copies and rank.builds(block.served):
            yield _end_part(block, rank)


def _copies(block: EndBlock, rank: _Rank) -> bool:
    """A tied head is the embedding where both are; alone on the last stage it brings a copy of it."""
    if block.end == "last":
        return rank.is_last and not block.tied
    tied = rank.model.tie_word_embeddings
    needed_by_head = rank.is_last and tied and (rank.by_transformers or bool(block.vocabulary_width))
    return rank.is_first or needed_by_head


def _end_part(block: EndBlock, rank: _Rank) -> _Part:
    if not block.vocabulary_width:
        return _Part(name=block.name, elements=block.replicated, text=f"{block.name} {block.replicated:,}")
    rows = padded_vocabulary(rank.model.vocab_size)
    return _Part(
        name=block.name,
        elements=rows // rank.tp * block.vocabulary_width,
        text=f"{block.name} {_over(f'{rows:,} x {block.vocabulary_width:,}', rank.tp)}",
    )


def _scalars(size_bytes: int) -> tuple[tuple[str, int], ...]:
    """Trained scalars of an activation (xIELU) are bfloat16 whatever the model is."""
    return (("activation scalars", size_bytes),) if size_bytes else ()


def _buffers(rank: _Rank) -> tuple[tuple[str, int], ...]:
    """Registered buffers, whole on every rank: RoPE, four fp32 KV scales a layer, and the scalars of a few families."""
    model = rank.model
    rope = model.rope.frequencies_bytes if rank.by_transformers else model.rope.table_bytes(rank.dtype)
    scalars = rank.layers * model.layer_scalar_buffers * SCALAR_BYTES + model.model_scalar_buffers * rank.element_bytes
    mask = model.mask_positions**2 if rank.by_transformers else 0
    sizes = (
        ("RoPE table", rope),
        ("KV scales", rank.layers * SCALE_BYTES_PER_LAYER),
        ("scalars", scalars),
        ("causal mask", mask),
    )
    return tuple((name, size) for name, size in sizes if size)


def _formula(rank: _Rank, parts: list[_Part], buffers: tuple[tuple[str, int], ...]) -> str:
    of_layers = [part.text for part in parts if part.name in LAYER_NAMES]
    of_ends = [part.text for part in parts if part.name not in LAYER_NAMES]
    body = " + ".join([f"{rank.layers} layers x ({' + '.join(of_layers)})", *of_ends])
    return " + ".join([f"({body}) x {rank.element_bytes} B", *(f"{name} {size:,} B" for name, size in buffers)])


def weight_refusals(model: Model, layout: Layout) -> tuple[Reason, ...]:
    """Return why vLLM would not build this layout, in the order of its boot.

    Source: vLLM `ModelConfig.verify_with_parallel_config` (heads, pipeline), `distributed.utils.divide` and the
    assertions of the model classes (KV heads, dimensions).
    """
    checks = (_heads_refusal, _pipeline_refusal, _kv_heads_refusal, _dimension_refusal)
    return tuple(reason for check in checks if (reason := check(model, layout)) is not None)


def _heads_refusal(model: Model, layout: Layout) -> Reason | None:
    heads, tp = model.num_attention_heads, layout.tensor_parallel_size
    if heads % tp == 0:
        return None
    return Reason(
        rule="heads_tp",
        field="tensor_parallel_size",
        message=f"{heads} attention heads are not divisible by tensor_parallel_size {tp}.",
        remedy=f"choose a tensor-parallel size that divides {heads}, and pipeline parallelism for the rest",
    )


def _pipeline_refusal(model: Model, layout: Layout) -> Reason | None:
    if layout.pipeline_parallel_size == 1 or model.supports_pp:
        return None
    return Reason(
        rule="pp_unsupported",
        field="pipeline_parallel_size",
        message=f"vLLM has no pipeline parallelism for {model.architecture}.",
        remedy="use --pipeline-parallel-size 1",
    )


def _kv_heads_refusal(model: Model, layout: Layout) -> Reason | None:
    kv_heads, tp = model.num_kv_heads, layout.tensor_parallel_size
    if kv_heads % tp == 0 or tp % kv_heads == 0:
        return None
    return Reason(
        rule="kvheads_tp",
        field="tensor_parallel_size",
        message=f"{kv_heads} KV heads can neither be split over nor repeated on {tp} ranks evenly.",
        remedy=f"choose a tensor-parallel size that divides {kv_heads} or is a multiple of it",
    )


def _dimension_refusal(model: Model, layout: Layout) -> Reason | None:
    tp = layout.tensor_parallel_size
    sizes = (("intermediate_size", model.intermediate_size), ("padded vocabulary", padded_vocabulary(model.vocab_size)))
    name, size = next(((name, size) for name, size in sizes if size % tp), ("", 0))
    if not name:
        return None
    return Reason(
        rule="dim_tp",
        field="tensor_parallel_size",
        message=f"{name} {size:,} is not divisible by tensor_parallel_size {tp}.",
        remedy="choose a smaller tensor-parallel size, and pipeline parallelism for the rest",
    )
