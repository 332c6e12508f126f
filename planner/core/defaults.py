"""Every flag that a command leaves open, filled in as that vLLM version does on that device for that model."""

from planner.core.capture import capture_sizes, cudagraph_mode
from planner.core.engine import BatchDefaults, EngineArgs, EngineFacts, ResolvedArgs, Version
from planner.core.errors import BadInput, Unknown
from planner.core.hardware import Gpu
from planner.core.layout import parse_partition, pipeline_split
from planner.core.model import Model
from planner.core.units import DTYPE_BYTES, GIB, gib

LENGTH_WITHOUT_A_KEY = 2048
DEFAULT_BLOCK_SIZE = 16
MOST_RANKS = 1024
MOST_CPU_CACHE_GIB = 1 << 20
COUNTS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "max_num_seqs",
    "max_num_batched_tokens",
    "num_gpu_blocks_override",
    "max_cudagraph_capture_size",
)
KV_ELEMENT_BYTES = {**DTYPE_BYTES, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_inc": 1}
DTYPE_SPELLINGS = {"half": "float16", "float": "float32", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


def resolve(args: EngineArgs, *, model: Model, gpu: Gpu, facts: EngineFacts) -> ResolvedArgs:
    """Return the command with its defaults, as vLLM `EngineArgs.create_engine_config` does.

    Raises BadInput for a value no version takes, Unknown for one this planner cannot size yet.
    """
    dtype = _dtype(args, model, gpu, facts)
    _require_whole_numbers(args)
    tp, pp, dp = _parallel_sizes(args, model)
    max_model_len = _max_model_len(args, model, facts)
    chunked = True if args.enable_chunked_prefill is None else args.enable_chunked_prefill
    tokens, seqs = _batch(args, gpu, facts, tp * pp, max_model_len, chunked=chunked)
    kv_cache_dtype = dtype if args.kv_cache_dtype in (None, "auto") else str(args.kv_cache_dtype)
    mode = cudagraph_mode(args, gpu, facts)
    runner = model_runner(args, model, facts) if not gpu.is_cpu else "v1"
    return ResolvedArgs(
        dtype=dtype,
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=dp,
        gpu_memory_utilization=_or(args.gpu_memory_utilization, facts.default_gpu_memory_utilization),
        max_model_len=max_model_len,
        auto_max_model_len=args.max_model_len == "auto",
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        kv_cache_dtype=kv_cache_dtype,
        kv_element_bytes=_kv_element_bytes(kv_cache_dtype),
        block_size=_block_size(args, gpu, facts),
        enforce_eager=bool(args.enforce_eager) or mode == "NONE",
        enable_prefix_caching=True if args.enable_prefix_caching is None else args.enable_prefix_caching,
        enable_chunked_prefill=chunked,
        async_scheduling=_async_scheduling(args, gpu, facts, runner, pp),
        cudagraph_mode=mode,
        cudagraph_capture_sizes=capture_sizes(args, gpu, facts, tokens, seqs) if mode != "NONE" else (),
        model_runner=runner,
        kv_cache_memory_bytes=_kv_cache_memory_bytes(args, gpu, facts),
        num_gpu_blocks_override=args.num_gpu_blocks_override,
        layers_per_stage=_layers_per_stage(args, model, pp),
        given=args.given,
    )


def _or(given: float | None, default: float) -> float:
    return default if given is None else given


def _require_whole_numbers(args: EngineArgs) -> None:
    """A zero here is no way to say "default"; vLLM's own checks come later and speak of other things."""
    for name in COUNTS:
        value = getattr(args, name)
        if value is not None and value < 1:
            raise BadInput(field=name, message=f"{value:,} is below 1.", fix="give a whole number from 1 up")


def _parallel_sizes(args: EngineArgs, model: Model) -> tuple[int, int, int]:
    tp, pp, dp = (
        args.tensor_parallel_size or 1,
        args.pipeline_parallel_size or 1,
        args.data_parallel_size or 1,
    )
    if pp > model.num_layers:
        message = f"{pp:,} stages are more than the model's {model.num_layers:,} layers."
        fix = f"use at most {model.num_layers}"
        raise BadInput(field="pipeline_parallel_size", message=message, fix=fix)
    if tp * pp > MOST_RANKS and model.num_attention_heads % tp == 0:
        message = f"a replica of {tp * pp:,} GPUs is beyond what is planned."
        raise Unknown(field="tensor_parallel_size", message=message, fix=f"plan at most {MOST_RANKS:,} GPUs a replica")
    return tp, pp, dp


def _block_size(args: EngineArgs, gpu: Gpu, facts: EngineFacts) -> int:
    if args.block_size is not None:
        return args.block_size
    return facts.cpu_block_size if gpu.is_cpu else DEFAULT_BLOCK_SIZE


def _dtype(args: EngineArgs, model: Model, gpu: Gpu, facts: EngineFacts) -> str:
    """`auto` takes the checkpoint's dtype, but float32 becomes the device's 16-bit one (vLLM `_resolve_auto_dtype`)."""
    given = (args.dtype or "auto").lower()
    if given != "auto":
        return DTYPE_SPELLINGS.get(given, given)
    halves = "float16" if gpu.below(8) or facts.version < Version(0, 9) else "bfloat16"
    if model.dtype == "float32" or (model.dtype == "bfloat16" and gpu.below(8)):
        return halves
    return model.dtype


def _max_model_len(args: EngineArgs, model: Model, facts: EngineFacts) -> int:
    if isinstance(args.max_model_len, int):
        return args.max_model_len
    return model.context.default(facts.version) or LENGTH_WITHOUT_A_KEY


def default_batch(gpu: Gpu, facts: EngineFacts) -> BatchDefaults:
    """Return the row of scheduler defaults this device takes (vLLM `EngineArgs.get_batch_defaults`)."""
    name = gpu.name.lower()
    return next(row for row in facts.batched_token_defaults if row.holds_for(gib(gpu.total_bytes), name))


def _batch(
    args: EngineArgs, gpu: Gpu, facts: EngineFacts, world_size: int, max_model_len: int, *, chunked: bool
) -> tuple[int, int]:
    """Return (max_num_batched_tokens, max_num_seqs); vLLM `_set_default_max_num_seqs_and_batched_tokens_args`."""
    default_tokens, default_seqs = _batch_defaults(args, gpu, facts, world_size)
    seqs = args.max_num_seqs or default_seqs
    if args.max_num_batched_tokens is not None:
        tokens = args.max_num_batched_tokens
    else:
        tokens = min(default_tokens if chunked else max(max_model_len, default_tokens), seqs * max_model_len)
    return tokens, seqs if args.max_num_seqs else min(seqs, tokens)


def _batch_defaults(args: EngineArgs, gpu: Gpu, facts: EngineFacts, world_size: int) -> tuple[int, int]:
    offline = args.usage == "offline"
    if gpu.is_cpu:
        tokens = facts.cpu_offline_tokens if offline else facts.cpu_server_tokens
        seqs = facts.cpu_max_num_seqs_offline if offline else facts.cpu_max_num_seqs
        tokens, seqs = tokens * world_size, seqs * world_size
    else:
        row = default_batch(gpu, facts)
        tokens = row.offline_tokens if offline else row.server_tokens
        seqs = row.max_num_seqs_offline or row.max_num_seqs if offline else row.max_num_seqs
    doubled = 2 if args.performance_mode == "throughput" else 1
    return tokens * doubled, seqs * doubled


def _kv_element_bytes(kv_cache_dtype: str) -> int:
    if kv_cache_dtype not in KV_ELEMENT_BYTES:
        raise Unknown(
            field="kv_cache_dtype",
            message=f"{kv_cache_dtype!r} is not planned yet.",
            fix="plan with auto, bfloat16, float16 or fp8",
        )
    return KV_ELEMENT_BYTES[kv_cache_dtype]


def _kv_cache_memory_bytes(args: EngineArgs, gpu: Gpu, facts: EngineFacts) -> int | None:
    """On the CPU platform the environment variable (whole GiB) silently wins over the flag."""
    if not gpu.is_cpu:
        return args.kv_cache_memory_bytes
    space = args.env("VLLM_CPU_KVCACHE_SPACE")
    if space is not None and space.isdigit() and int(space):
        return min(int(space), MOST_CPU_CACHE_GIB) * GIB
    if args.kv_cache_memory_bytes is None and facts.cpu_default_kv_gib is not None:
        return facts.cpu_default_kv_gib * GIB
    return args.kv_cache_memory_bytes


def _layers_per_stage(args: EngineArgs, model: Model, stages: int) -> tuple[int, ...]:
    text = args.env("VLLM_PP_LAYER_PARTITION")
    if text:
        return parse_partition(text, num_layers=model.num_layers, stages=stages)
    return pipeline_split(model.num_layers, stages)


RUNNER_V2_ARCHITECTURES = {
    "none": frozenset[str](),
    "qwen3_dense": frozenset({"Qwen3ForCausalLM"}),
    "dense_list": frozenset({"Qwen3ForCausalLM", "LlamaForCausalLM", "MistralForCausalLM"}),
}


def model_runner(args: EngineArgs, model: Model, facts: EngineFacts) -> str:
    """Return which model runner (`v1` or `v2`) serves a dense model (vLLM `VllmConfig.use_v2_model_runner`)."""
    asked = args.env("VLLM_USE_V2_MODEL_RUNNER")
    if asked in ("0", "1") and facts.model_runner_v2 != "none":
        return "v2" if asked == "1" else "v1"
    served = RUNNER_V2_ARCHITECTURES.get(facts.model_runner_v2)
    return "v2" if served is None or model.architecture in served else "v1"


def _async_scheduling(args: EngineArgs, gpu: Gpu, facts: EngineFacts, runner: str, stages: int) -> bool:
    able = not gpu.is_cpu and (stages == 1 or runner == "v2")
    wanted = facts.async_scheduling_default if args.async_scheduling is None else args.async_scheduling
    return able and wanted
