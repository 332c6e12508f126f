"""Peak activation: what one profiled batch needs beyond the weights, and not a byte of it depends on max_model_len."""

from planner.core.allocation import gated_mlp
from planner.core.engine import Version
from planner.core.fit import ActivationFit
from planner.core.situation import Situation
from planner.core.units import in_gib

SORTS_BEFORE = Version(0, 17)
PIPELINE_HIDDEN_COPIES = 2  # hidden states and residual, kept for the neighbour stage
FIRST_STAGE_HIDDEN_COPIES = 1  # the embedded batch
SOURCE = "vLLM v1/worker profile_run: max over its phases; bytes a logit and copies fitted to published boots"


def sampler_bytes(situation: Situation, fit: ActivationFit) -> float:
    """Return what sampling for every sequence at once needs: the logits of all, each a few times over.

    Before 0.17 top-k/top-p sorts the vocabulary (values, indices, scatter); from 0.17 a Triton kernel masks in place.
    The second model runner skips both when it profiles. Source: vLLM `v1.sample.ops.topk_topp_sampler`.
    """
    hidden = fit.sampler_hidden_copies * situation.element_bytes * situation.hidden_batch
    return bytes_per_logit(situation, fit) * situation.logits + fit.sampler_bytes + hidden


def bytes_per_logit(situation: Situation, fit: ActivationFit) -> float:
    """Return the bytes that one logit takes while it is sampled, the logit itself included."""
    if situation.args.model_runner == "v2":
        return situation.element_bytes
    sorts = situation.facts.version < SORTS_BEFORE
    return situation.element_bytes + (fit.sorting_bytes_per_logit if sorts else fit.masking_bytes_per_logit)


def body_bytes(situation: Situation, fit: ActivationFit) -> float:
    """Return what one layer needs for the whole batch: its widest MLP buffers and the live hidden states.

    2 x T x (3 I / TP + copies x H) for a gated MLP (gate, up and their product), 2 I / TP for a plain one.
    """
    mlp = mlp_width(situation) * situation.args.max_num_batched_tokens
    return situation.element_bytes * (mlp + fit.body_hidden_copies * situation.hidden_batch)


def mlp_width(situation: Situation) -> float:
    """Return the elements a token takes in the widest moment of the MLP on one rank."""
    buffers = 3 if gated_mlp(situation.model) else 2
    return buffers * situation.model.intermediate_size / situation.layout.tensor_parallel_size


def pipeline_bytes(situation: Situation) -> int:
    """Return what a stage keeps for its neighbour; nothing without pipeline parallelism."""
    return pipeline_copies(situation) * situation.element_bytes * situation.hidden_batch


def pipeline_copies(situation: Situation) -> int:
    """Return how many copies of a batch's hidden states that is."""
    if situation.layout.pipeline_parallel_size == 1:
        return 0
    return PIPELINE_HIDDEN_COPIES + FIRST_STAGE_HIDDEN_COPIES * situation.layout.is_first(situation.pp_stage)


def sampler_binds(situation: Situation, fit: ActivationFit) -> bool:
    """Whether sampling, not the layers, sets the peak."""
    return situation.samples and sampler_bytes(situation, fit) >= body_bytes(situation, fit)


def activation_bytes(situation: Situation, fit: ActivationFit) -> float:
    """Return the central peak activation of one stage."""
    binding = sampler_bytes if sampler_binds(situation, fit) else body_bytes
    return binding(situation, fit) + pipeline_bytes(situation)


def activation_formula(situation: Situation, fit: ActivationFit) -> str:
    """Return the formula with its numbers: the phase that binds, and what the other one would need."""
    args, model, element = situation.args, situation.model, situation.element_bytes
    tokens, hidden = f"{args.max_num_batched_tokens:,} tokens", f"{model.hidden_size:,} hidden"
    copies = pipeline_copies(situation)
    passed_on = f" + {copies} x {element} B x {tokens} x {hidden}" if copies else ""
    if sampler_binds(situation, fit):
        return (
            f"sampling: {bytes_per_logit(situation, fit):.1f} B x {situation.sampled_rows:,} sequences x "
            f"{model.vocab_size:,} vocabulary + {in_gib(fit.sampler_bytes)} + {fit.sampler_hidden_copies:.1f} x "
            f"{element} B x {tokens} x {hidden}{passed_on} (a layer needs {in_gib(body_bytes(situation, fit))})"
        )
    sampling = f" (sampling needs {in_gib(sampler_bytes(situation, fit))})" if situation.samples else ""
    return (
        f"layers: {element} B x {tokens} x ({mlp_width(situation):,.0f} MLP + {fit.body_hidden_copies:.1f} x {hidden})"
        f"{passed_on}{sampling}"
    )
