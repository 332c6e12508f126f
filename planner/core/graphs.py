"""CUDA graphs: a base, every layer in every captured graph, and on Hopper the attention kernel's split workspace.

A layer's share in a graph grows with its kernels: routed experts and quantised activations add some.

From 0.20 vLLM deducts its own estimate from the budget; before, what is captured lies outside.
"""

from planner.core.fit import GraphFit
from planner.core.situation import Situation
from planner.core.units import KIB, in_gib

FLASH_ATTENTION_3_SPLITS = 32  # vLLM VLLM_FLASH_ATTN_MAX_NUM_SPLITS_FOR_CUDA_GRAPH
QUANTISE_ACTIVATIONS = frozenset({"fp8", "compressed-tensors", "modelopt", "fbgemm_fp8"})
SOURCE = "captures of published boots; split workspace: vLLM v1/attention/backends/flash_attn.py"


def graph_count(situation: Situation) -> int:
    """Return how many graphs are captured: one a size piecewise, and one whole a size that decoding can reach."""
    args = situation.args
    mode, sizes = args.cudagraph_mode, args.cudagraph_capture_sizes
    piecewise = len(sizes) if "PIECEWISE" in mode else 0
    whole = sum(size <= args.max_num_seqs for size in sizes) if "FULL" in mode else 0
    return piecewise + whole


def split_workspace_bytes(situation: Situation) -> int:
    """Return FlashAttention 3's float32 partial outputs for the largest whole graph: 32 splits x tokens x heads.

    Only Hopper runs it, and only in 16-bit.
    """
    args, model = situation.args, situation.model
    whole = [size for size in args.cudagraph_capture_sizes if size <= args.max_num_seqs]
    if situation.hardware != "hopper" or "FULL" not in args.cudagraph_mode or args.dtype == "float32" or not whole:
        return 0
    if model.decoder.whole_item_tokens is not None:  # images that attend both ways are served by another kernel
        return 0
    heads = model.num_attention_heads // situation.layout.tensor_parallel_size
    return FLASH_ATTENTION_3_SPLITS * max(whole) * heads * model.head_dim * 4


def graphs_bytes(situation: Situation, fit: GraphFit) -> float:
    """Return the central size of all graphs of one stage; 0 when none is captured."""
    count = graph_count(situation)
    if not count:
        return 0.0
    return fit.base_bytes + nodes_bytes(situation, fit) + split_workspace_bytes(situation)


def nodes_bytes(situation: Situation, fit: GraphFit) -> float:
    """Return what the layers take in all graphs."""
    each = fit.bytes_per_layer_and_graph * (1 + fit.experts_share * has_experts(situation))
    each += fit.bytes_per_layer_and_graph * fit.quantised_share * quantises_activations(situation)
    return each * situation.layers * graph_count(situation)


def has_experts(situation: Situation) -> bool:
    """Whether layers route over experts."""
    return situation.model.traits.experts > 0


def quantises_activations(situation: Situation) -> bool:
    """Whether the checkpoint's layers quantise what goes into them."""
    quantization = situation.model.quantization
    return quantization is not None and quantization.method in QUANTISE_ACTIVATIONS


def estimated_bytes(situation: Situation, fit: GraphFit) -> float:
    """Return the central size of vLLM's own estimate, which is what the budget pays from 0.20 on."""
    return graphs_bytes(situation, fit) * fit.estimated_share


def charged_bytes(situation: Situation, fit: GraphFit) -> float:
    """Return the estimate where the budget pays it, else what is captured."""
    inside = situation.facts.cuda_graphs == "inside"
    return estimated_bytes(situation, fit) if inside else graphs_bytes(situation, fit)


def graphs_formula(situation: Situation, fit: GraphFit) -> str:
    """Return the formula with its numbers."""
    count = graph_count(situation)
    if not count:
        return "no graph is captured"
    split = split_workspace_bytes(situation)
    workspace = f" + {in_gib(split)} attention split workspace" if split else ""
    each = nodes_bytes(situation, fit) / situation.layers / count
    captured = (
        f"{in_gib(fit.base_bytes)} + {each / KIB:.0f} KiB x {situation.layers} layers x {count} graphs{workspace}"
    )
    if situation.facts.cuda_graphs != "inside":
        return captured
    return f"{fit.estimated_share:.2f} x ({captured}), as vLLM estimates it"
