"""What vLLM refuses of quantised weights: the method, the GPU's age, dtypes, and blocks that ranks would cut."""

from collections.abc import Iterator

from planner.core.engine import Version
from planner.core.modules import Experts, Linear, Split
from planner.core.quantization.methods import FAMILIES, METHODS, Method, method_in
from planner.core.rule_case import Case, Rule, refuse
from planner.core.terms import Reason
from planner.core.traits import distinct_layers

ONLINE_FP8_ENDS = Version(0, 31)
MARLIN_PADS = Version(0, 24)
MARLIN_TILE_OUTPUTS = 64
MARLIN_TILE_INPUTS = 128
PACKED_BY = {"pack": "no_scaled_mm_kernel", "awq": "marlin_k", "gptq": "marlin_k"}


def _asked(case: Case) -> str:
    return (case.args.quantization or "").lower().replace("compressed_tensors", "compressed-tensors")


def _named(case: Case) -> str:
    """The method's name in this release, "" for weights that are not quantised."""
    stated = case.model.quantization
    if stated is None:
        return _asked(case)
    capability = case.gpu.compute_capability
    number = 0 if capability is None else 10 * capability[0] + capability[1]
    return method_in(stated.method, stated.algorithm, version=case.version, capability=number)


def _method(case: Case) -> Method | None:
    return METHODS.get(_named(case))


def method_is_not_the_checkpoints(case: Case) -> Reason | None:
    """vLLM `ModelConfig._verify_quantization`."""
    asked, stated = _asked(case), case.model.quantization
    if not asked or stated is None or asked in FAMILIES.get(stated.method, frozenset({stated.method})):
        return None
    message = f"the checkpoint's weights are {stated.method}, not {asked}."
    return refuse("quant_mismatch", "quantization", message, "drop --quantization")


def method_is_unknown(case: Case) -> Reason | None:
    """vLLM `ModelConfig._verify_quantization`: methods come and go."""
    name, method = _named(case), _method(case)
    if not name or (case.model.quantization is not None and method is None):
        return None
    if method is not None and method.lives(case.version):
        return None
    message = f"vLLM {case.version} knows no quantisation method {name}."
    if method is not None and method.gone and case.version >= Version.parse(method.gone):
        message = f"{name} left vLLM with {method.gone}, before {case.version}."
    remedy = "take a release or a plug-in that has it, or another checkpoint"
    return refuse("quant_unknown", "quantization", message, remedy)


def method_is_deprecated(case: Case) -> Reason | None:
    """vLLM `ModelConfig._verify_quantization`, since 0.14."""
    method = _method(case)
    if method is None or not method.is_deprecated(case.version) or case.args.asks("allow_deprecated_quantization"):
        return None
    message = f"{_named(case)} is on its way out."
    return refuse("quant_deprecated", "quantization", message, "add --allow-deprecated-quantization")


def fp8_at_load_is_gone(case: Case) -> Reason | None:
    """vLLM `Fp8Config`, since 0.31: the name stands for checkpoints that are fp8 already."""
    if _asked(case) != "fp8" or case.model.quantization is not None or case.version < ONLINE_FP8_ENDS:
        return None
    message = "fp8 no longer quantises a checkpoint while it loads."
    return refuse("fp8_online_removed", "quantization", message, "use --quantization fp8_per_tensor")


def gpu_is_too_old(case: Case) -> Reason | None:
    """vLLM `VllmConfig._get_quantization_config`: `get_min_capability` of the method."""
    method = _method(case)
    least = 0 if method is None else method.least_capability(case.version)
    if case.gpu.is_cpu or not case.gpu.below(*divmod(least, 10)):
        return None
    message = f"{_named(case)} needs compute capability {least / 10:.1f}, and {case.gpu.name} is older."
    return refuse("quant_capability", "quantization", message, "take a checkpoint in another format, or a newer GPU")


def dtype_is_not_computed_in(case: Case) -> Reason | None:
    """vLLM `VllmConfig._get_quantization_config`: `get_supported_act_dtypes` of the method."""
    method, dtype = _method(case), case.resolved.dtype
    if method is None or dtype in method.dtypes:
        return None
    message = f"{_named(case)} does not compute in {dtype}."
    return refuse("quant_dtype", "dtype", message, f"use --dtype {' or '.join(method.dtypes)}")


def block_of_inputs_is_cut(case: Case) -> Reason | None:
    """vLLM `fp8_utils.validate_fp8_block_shape`: inputs of a row-parallel layer come in whole blocks."""
    tp = case.layout.tensor_parallel_size
    for linear in _linears(case, "fp8"):
        block = linear.scheme.block if linear.scheme is not None else None
        inputs = linear.inputs_on_rank(tp)
        if block is not None and tp > 1 and linear.split is Split.ROW and inputs % block[1]:
            return _cut("fp8_block_k", f"{inputs:,} inputs of {linear.name}", block[1])
    return None


def block_of_outputs_is_cut(case: Case) -> Reason | None:
    """vLLM `fp8_utils.validate_fp8_block_shape` and, for experts, `validate_fp8_block_shape_moe`."""
    tp = case.layout.tensor_parallel_size
    for linear in _linears(case, "fp8"):
        block = linear.scheme.block if linear.scheme is not None else None
        sizes = linear.outputs_on_rank(tp)
        split = tp > 1 and linear.split is Split.COLUMN
        checked = sizes if split else sizes[:-1]
        odd = next((size for size in checked if block is not None and size % block[0]), 0)
        if odd and block is not None:
            return _cut("fp8_block_n", f"{odd:,} outputs of {linear.name}", block[0])
    return None


def tile_of_outputs_is_cut(case: Case) -> Reason | None:
    """vLLM `marlin_utils.verify_marlin_supports_shape`; since 0.24 the kernel pads, and float16 has another one."""
    tp = case.layout.tensor_parallel_size
    if case.version >= MARLIN_PADS or case.resolved.dtype == "float16":
        return None
    for linear in _linears(case, "gptq"):
        outputs = sum(linear.outputs_on_rank(tp))
        if outputs % MARLIN_TILE_OUTPUTS:
            return _cut("marlin_n", f"{outputs:,} outputs of {linear.name}", MARLIN_TILE_OUTPUTS)
    return None


def group_of_inputs_is_cut(case: Case) -> Reason | None:
    """vLLM `marlin_utils.verify_marlin_supports_shape`, `MPLinearKernel.can_implement`: groups come whole."""
    tp = case.layout.tensor_parallel_size
    for linear in _linears(case, *PACKED_BY):
        scheme, inputs = linear.scheme, linear.inputs_on_rank(tp)
        if scheme is None or scheme.group_size in (None, -1) or linear.split is not Split.ROW:
            continue
        tile = _input_tile(case, scheme.method, scheme.group_size or 1)
        if inputs % tile:
            return _cut(PACKED_BY[scheme.method], f"{inputs:,} inputs of {linear.name}", tile)
    return None


def _input_tile(case: Case, method: str, group_size: int) -> int:
    """The inputs that a rank's share must be a multiple of: the group, and Marlin's tile where nothing pads."""
    tiled = method == "gptq" and case.version < MARLIN_PADS and case.resolved.dtype != "float16"
    return max(group_size, MARLIN_TILE_INPUTS) if tiled else group_size


def _cut(rule: str, what: str, size: int) -> Reason:
    message = f"a rank's {what} are no multiple of {size}, so that a quantised block would be cut."
    return refuse(rule, "tensor_parallel_size", message, "choose a smaller tensor-parallel size")


def experts_block_is_cut(case: Case) -> Reason | None:
    """vLLM `validate_fp8_block_shape_moe`; only ranks of several replicas are left, alone they pad since 0.30."""
    layout = case.layout
    ranks = 1 if case.args.enable_expert_parallel else layout.tensor_parallel_size * layout.data_parallel_size
    if layout.data_parallel_size == 1 and case.version >= Version(0, 30):
        return None
    for experts in _experts(case):
        block = experts.scheme.block if experts.scheme is not None else None
        width = experts.intermediate_size // ranks
        if block is not None and width % block[0]:
            reason = _cut("fp8_block_n", f"{width:,} outputs of the experts", block[0])
            return refuse(reason.rule, reason.field, reason.message, "add --enable-expert-parallel, or fewer ranks")
    return None


def no_kernel_computes_with_it(case: Case) -> Reason | None:
    """vLLM `model_executor.kernels.linear`: every kernel for 4- and 8-bit integers needs the GPU to be 7.5."""
    packed = next(_linears(case, "pack"), None)
    if packed is None or case.gpu.is_cpu or not case.gpu.below(7, 5):
        return None
    message = f"no kernel computes with packed weights on {case.gpu.name} (compute capability below 7.5)."
    return refuse("no_scaled_mm_kernel", "gpu", message, "take a checkpoint in another format, or another GPU")


def _linears(case: Case, *methods: str) -> Iterator[Linear]:
    if case.model.quantization is None:
        return
    for layer in distinct_layers(case.model.decoder):
        for module in layer.modules:
            if isinstance(module, Linear) and module.scheme is not None and module.scheme.method in methods:
                yield module


def _experts(case: Case) -> Iterator[Experts]:
    if case.model.quantization is None:
        return
    for layer in distinct_layers(case.model.decoder):
        yield from (module for module in layer.modules if isinstance(module, Experts))


RULES: tuple[Rule, ...] = (
    method_is_not_the_checkpoints,
    method_is_unknown,
    method_is_deprecated,
    fp8_at_load_is_gone,
    gpu_is_too_old,
    dtype_is_not_computed_in,
    block_of_inputs_is_cut,
    block_of_outputs_is_cut,
    experts_block_is_cut,
    tile_of_outputs_is_cut,
    group_of_inputs_is_cut,
    no_kernel_computes_with_it,
)
