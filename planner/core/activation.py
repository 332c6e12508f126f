"""Peak activation: what one profiled batch needs beyond the weights.

vLLM's profiling run encodes the largest items, runs the layers on a full batch and samples for every sequence; the
largest of the three counts, with what stays between them. Sizes are read from vLLM's source; the few that are not are
fitted to published boots.
"""

from collections.abc import Iterator
from functools import lru_cache

from planner.core.decoder import Decoder, Layer
from planner.core.encoder_peak import encoding_of, held_bytes, peak_bytes
from planner.core.engine import Version
from planner.core.fit import ActivationFit
from planner.core.modules import Linear, Split
from planner.core.sameness import Same
from planner.core.situation import Situation
from planner.core.traits import distinct_layers
from planner.core.units import MIB, in_gib, in_words
from planner.core.workspaces import passing_bytes, shared_bytes

SORTS_BEFORE = Version(0, 17)
SORTS_BELOW_ROWS = 8
SECOND_RUNNER_COPIES_BEFORE = Version(0, 27)
FLOAT32_BYTES = 4
MASKED_BYTES_PER_LOGIT = 3 * FLOAT32_BYTES  # a float32 copy, the probabilities, and noise of the same shape
NOISE_TILE = 1024  # logits that share a partial maximum (int64 place, float32 value) in the second runner
NOISE_TILE_BYTES = 12
SAMPLED_HIDDEN_COPIES = 2  # rows that are sampled, and the random stand-ins that the first runner puts in their place
MULTIPROCESSORS = {(7, 5): 40, (8, 0): 108, (8, 6): 84, (8, 9): 128, (9, 0): 132, (12, 0): 170, (12, 1): 48}
MULTIPROCESSORS_ELSEWHERE = 148
CUBLAS_BYTES = {9: 32 * MIB}  # PyTorch's workspace for cuBLAS, 4096 KiB x 8 on Hopper
CUBLAS_BYTES_ELSEWHERE = 8 * MIB + 128 * 1024
PIPELINE_HIDDEN_COPIES = 2  # hidden states and residual, kept for the neighbour stage
FIRST_STAGE_HIDDEN_COPIES = 1  # the embedded batch
QUANTISED_ACTIVATIONS = frozenset({"fp8", "int8"})
SOURCE = "vLLM v1/worker profile_run: max over its phases, read from its source; copies of the hidden states fitted"


def sampler_bytes(situation: Situation, fit: ActivationFit) -> float:
    """Return what sampling for every sequence at once needs: the logits of all, a few times over, and the batch.

    Source: vLLM `v1.sample.ops.topk_topp_sampler`, `v1.worker.gpu.sample.sampler`.
    """
    rows = SAMPLED_HIDDEN_COPIES * situation.sampled_rows * situation.model.hidden_size
    hidden = situation.element_bytes * (situation.hidden_batch + rows)
    return bytes_per_logit(situation, fit) * situation.logits + hidden


def bytes_per_logit(situation: Situation, fit: ActivationFit) -> float:
    """Return the bytes that one logit takes while it is sampled, the logit itself included.

    Before 0.17, and for fewer than 8 sequences, top-k/top-p sorts the vocabulary; from 0.17 a kernel masks in place.
    A vocabulary of a power of two took no more than masking on both boots that sorted one; why is not known. The second
    model runner samples with noise alone when it profiles.
    """
    if situation.args.model_runner == "v2":
        copies = situation.facts.version < SECOND_RUNNER_COPIES_BEFORE
        return situation.element_bytes + FLOAT32_BYTES * copies + NOISE_TILE_BYTES / NOISE_TILE
    return situation.element_bytes + (fit.sorting_bytes_per_logit if sorts(situation) else MASKED_BYTES_PER_LOGIT)


def sorts(situation: Situation) -> bool:
    """Whether the first runner takes memory to sort the vocabulary when it samples."""
    vocabulary = situation.model.vocab_size
    is_power_of_two = vocabulary & (vocabulary - 1) == 0
    wanted = situation.facts.version < SORTS_BEFORE or situation.sampled_rows < SORTS_BELOW_ROWS
    return wanted and not is_power_of_two


def mask_bytes(situation: Situation) -> int:
    """Return the masking kernel's buffer: a float32 row of the vocabulary for each multiprocessor; it stays."""
    old = situation.facts.version < SORTS_BEFORE
    if not situation.samples or situation.args.model_runner == "v2" or old or sorts(situation):
        return 0
    many = MULTIPROCESSORS.get(situation.gpu.compute_capability or (0, 0), MULTIPROCESSORS_ELSEWHERE)
    programs = min(many, situation.sampled_rows)
    rows = min(1 << (programs - 1).bit_length(), many)
    return rows * situation.model.vocab_size * FLOAT32_BYTES


def staying_bytes(situation: Situation) -> int:
    """Return what profiling leaves allocated: shared scratch, the sampler's buffer, cuBLAS's workspace.

    Logs until 0.26 call it activation; from 0.27.1, which compares free memory, it is consumed.
    """
    capability = situation.gpu.compute_capability or (0, 0)
    cublas = CUBLAS_BYTES.get(capability[0], CUBLAS_BYTES_ELSEWHERE)
    return shared_bytes(situation) + mask_bytes(situation) + cublas


def body_bytes(situation: Situation, fit: ActivationFit) -> float:
    """Return what one layer needs for the whole batch: its widest buffers and the live hidden states.

    T x (3 I / TP + copies x H) in 16 bits for a gated MLP (gate, up and their product); where the context of MLA, the
    experts of older releases or the indexer need more, that.
    """
    hidden = fit.body_hidden_copies * situation.element_bytes * situation.hidden_batch
    return max(widest_block_bytes(situation), passing_bytes(situation)) + hidden


def widest_block_bytes(situation: Situation) -> float:
    """Return the batch's bytes in the widest block of any layer: what goes in and comes out of its projections."""
    ranks, element = situation.layout.tensor_parallel_size, situation.element_bytes
    return situation.args.max_num_batched_tokens * _widest_block(Same(situation.model.decoder), ranks, element)


@lru_cache(maxsize=512)
def _widest_block(decoder: Same[Decoder], ranks: int, element_bytes: int) -> float:
    layers = distinct_layers(decoder.held)
    return max((width for layer in layers for width in _blocks(layer, ranks, element_bytes)), default=0.0)


def _blocks(layer: Layer, ranks: int, element_bytes: int) -> Iterator[float]:
    """Bytes a token of each block of a layer; a quantised product is kept beside the plain one."""
    widths: dict[str, float] = {}
    for module in layer.modules:
        if isinstance(module, Linear) and module.served != "transformers":
            block = module.name.rpartition(".")[0]
            widths[block] = widths.get(block, 0.0) + _width(module, ranks, element_bytes)
    yield from widths.values()


def _width(linear: Linear, ranks: int, element_bytes: int) -> float:
    if linear.split is not Split.ROW:
        return element_bytes * sum(linear.outputs_on_rank(ranks))
    quantised = linear.scheme is not None and linear.scheme.method in QUANTISED_ACTIVATIONS
    return (element_bytes + quantised) * linear.inputs_on_rank(ranks)


def pipeline_bytes(situation: Situation) -> int:
    """Return what a stage keeps for its neighbour; nothing without pipeline parallelism."""
    return pipeline_copies(situation) * situation.element_bytes * situation.hidden_batch


def pipeline_copies(situation: Situation) -> int:
    """Return how many copies of a batch's hidden states that is."""
    if situation.layout.pipeline_parallel_size == 1:
        return 0
    return PIPELINE_HIDDEN_COPIES + FIRST_STAGE_HIDDEN_COPIES * situation.layout.is_first(situation.pp_stage)


def sampler_binds(situation: Situation, fit: ActivationFit) -> bool:
    """Whether sampling needs more than a layer does."""
    return situation.samples and sampler_bytes(situation, fit) >= body_bytes(situation, fit)


def encoder_bytes(situation: Situation) -> tuple[int, int]:
    """Return the encoder's own peak, and what stays of it while the language model runs; zeros without one."""
    encoding = encoding_of(situation)
    return (0, 0) if encoding is None else (peak_bytes(situation, encoding), held_bytes(situation, encoding))


def passing_peak_bytes(situation: Situation, fit: ActivationFit) -> float:
    """Return the peak of one stage beside what stays: of the encoder, or of the language model after it."""
    encoding, held = encoder_bytes(situation)
    binding = sampler_bytes if sampler_binds(situation, fit) else body_bytes
    return max(float(encoding), held + binding(situation, fit)) + pipeline_bytes(situation) + fit.base_bytes


def activation_bytes(situation: Situation, fit: ActivationFit) -> float:
    """Return the central peak activation of one stage, as its release counts it."""
    staying = 0 if situation.facts.measures_by_mem_get_info else staying_bytes(situation)
    return passing_peak_bytes(situation, fit) + staying


def activation_formula(situation: Situation, fit: ActivationFit) -> str:
    """Return the formula with its numbers: the phase that binds, and what the others would need."""
    encoding, held = encoder_bytes(situation)
    binding = sampler_bytes if sampler_binds(situation, fit) else body_bytes
    if encoding > held + binding(situation, fit):
        language = in_gib(binding(situation, fit))
        text = f"encoding the largest items: {in_gib(encoding)} (the language model needs {language})"
    else:
        text = _language_formula(situation, fit) + (f" + {in_words(held)} encoded items" if held else "")
    return text + "".join(f" + {part}" for part in _further(situation, fit))


def _language_formula(situation: Situation, fit: ActivationFit) -> str:
    args, element = situation.args, situation.element_bytes
    tokens, hidden = f"{args.max_num_batched_tokens:,} tokens", f"{situation.model.hidden_size:,} hidden"
    if sampler_binds(situation, fit):
        return (
            f"sampling: {bytes_per_logit(situation, fit):.1f} B x {situation.sampled_rows:,} sequences x "
            f"{situation.model.vocab_size:,} vocabulary + {element} B x {tokens} x {hidden} "
            f"(a layer needs {in_gib(body_bytes(situation, fit))})"
        )
    passing = passing_bytes(situation)
    block = widest_block_bytes(situation)
    widest = (
        in_gib(passing) if passing > block else f"{tokens} x {block / args.max_num_batched_tokens:,.0f} B of a block"
    )
    sampling = f" (sampling needs {in_gib(sampler_bytes(situation, fit))})" if situation.samples else ""
    return f"layers: {widest} + {fit.body_hidden_copies:.1f} x {element} B x {tokens} x {hidden}{sampling}"


def _further(situation: Situation, fit: ActivationFit) -> Iterator[str]:
    copies = pipeline_copies(situation)
    if copies:
        batch = f"{situation.args.max_num_batched_tokens:,} tokens x {situation.model.hidden_size:,} hidden"
        yield f"{copies} x {situation.element_bytes} B x {batch} for the neighbour stage"
    if not situation.facts.measures_by_mem_get_info:
        yield from staying_parts(situation)
    if fit.base_bytes >= MIB:
        yield in_words(round(fit.base_bytes))


def staying_parts(situation: Situation) -> Iterator[str]:
    """Return what profiling leaves allocated, in words."""
    shared, mask = shared_bytes(situation), mask_bytes(situation)
    if shared:
        yield f"{in_words(shared)} scratch that experts or the indexer share"
    if mask:
        yield f"{in_words(mask)} masking buffer"
    yield f"{in_words(staying_bytes(situation) - shared - mask)} cuBLAS workspace"
