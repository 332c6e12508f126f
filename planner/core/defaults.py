"""Every flag that a command leaves open, filled in as that vLLM version does on that device for that model."""

from planner.core.async_scheduling import async_scheduling, concurrent_batches
from planner.core.cache_content import element_dtype
from planner.core.capture import Batch, capture_sizes, cudagraph_mode
from planner.core.engine import BatchDefaults, EngineArgs, EngineFacts, ResolvedArgs, Version
from planner.core.errors import BadInput, Unknown
from planner.core.hardware import Gpu
from planner.core.kv_dtype import cache_request
from planner.core.layout import parse_partition, pipeline_split
from planner.core.loaded_towers import tower_use
from planner.core.lora import lora_slots
from planner.core.model import Model
from planner.core.model_runner import mamba_cache_mode, model_runner, prefix_caching
from planner.core.offload import offload_request
from planner.core.older_engine import why_the_older_engine
from planner.core.speculation import speculation_of
from planner.core.traits import Traits
from planner.core.units import ELEMENT_BYTES, GIB, gib

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
DTYPE_SPELLINGS = {"half": "float16", "float": "float32", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


def resolve(args: EngineArgs, *, model: Model, gpu: Gpu, facts: EngineFacts) -> ResolvedArgs:
    """Return the command with its defaults, as vLLM `EngineArgs.create_engine_config` does.

    Raises BadInput for a value no version takes, Unknown for one this planner cannot size yet.
    """
    dtype = _dtype(args, model, gpu, facts)
    _require_whole_numbers(args)
    tp, pp, dp = _parallel_sizes(args, model)
    traits, speculation = model.traits, speculation_of(args)
    max_model_len = _max_model_len(args, model, facts)
    chunked = _chunked_prefill(args, facts, traits)
    tokens, seqs = _batch(args, gpu, facts, model, tp * pp, max_model_len, chunked=chunked)
    caches = cache_request(args, model=model, gpu=gpu, facts=facts)
    mode = cudagraph_mode(args, gpu, facts, traits)
    drafted = 0 if speculation is None else speculation.tokens
    batch = Batch(tokens=tokens, seqs=seqs, query_tokens=1 + drafted, architecture=model.architecture)
    runner = model_runner(
        args,
        gpu,
        facts,
        architecture=model.architecture,
        traits=traits,
        quantised=model.quantization is not None,
        speculation=speculation,
    )
    caches_prefixes = prefix_caching(args, facts, architecture=model.architecture, traits=traits)
    states = mamba_cache_mode(
        args,
        facts,
        architecture=model.architecture,
        traits=traits,
        caches_prefixes=caches_prefixes,
        drafts=speculation is not None,
    )
    asynchronous = async_scheduling(
        args, gpu, facts, runner=runner, stages=pp, speculation=speculation, keeps_states=states != "none"
    )
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
        kv_cache_dtype=dtype if caches.kv_cache_dtype == "auto" else caches.kv_cache_dtype,
        kv_element_bytes=ELEMENT_BYTES[element_dtype(caches.kv_cache_dtype, dtype)],
        block_size=_block_size(args, gpu, facts),
        enforce_eager=bool(args.enforce_eager) or mode == "NONE",
        enable_prefix_caching=caches_prefixes,
        enable_chunked_prefill=chunked,
        async_scheduling=asynchronous,
        cudagraph_mode=mode,
        cudagraph_capture_sizes=capture_sizes(args, gpu, facts, batch) if mode != "NONE" else (),
        model_runner=runner,
        kv_cache_memory_bytes=_kv_cache_memory_bytes(args, gpu, facts),
        num_gpu_blocks_override=args.num_gpu_blocks_override,
        layers_per_stage=_layers_per_stage(args, model, pp),
        given=args.given,
        mamba_cache_mode=states,
        max_concurrent_batches=concurrent_batches(asynchronous=asynchronous, runner=runner, stages=pp),
        num_speculative_tokens=drafted,
        caches=caches,
        towers=tower_use(args),
        lora=lora_slots(args, dtype=dtype),
        offload=offload_request(args, facts.version),
        frontend_bytes=int((args.number("mm_ipc_gpu_memory_gb") or 0) * GIB) if traits.multimodal else 0,
        older_engine=why_the_older_engine(args, gpu, facts, traits, dtype),
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
    """`auto` takes the checkpoint's dtype where device and family can, else the first that both can.

    float32 becomes that one too. Source: vLLM `config.model._resolve_auto_dtype`, `Platform.supported_dtypes`.
    """
    given = (args.dtype or "auto").lower()
    if given != "auto":
        return DTYPE_SPELLINGS.get(given, given)
    able = [dtype for dtype in _device_dtypes(gpu, facts) if (dtype, model.model_type) not in refused_dtypes(facts)]
    return model.dtype if model.dtype in able and model.dtype != "float32" else able[0]


def _device_dtypes(gpu: Gpu, facts: EngineFacts) -> tuple[str, ...]:
    """16-bit types of the device, the preferred one first: until 0.9 that was float16 everywhere."""
    if gpu.below(8):
        return ("float16", "float32")
    return ("bfloat16", "float16", "float32") if facts.version >= Version(0, 9) else ("float16", "bfloat16", "float32")


def refused_dtypes(facts: EngineFacts) -> frozenset[tuple[str, str]]:
    """Return the (dtype, model_type) pairs that overflow (vLLM `_FLOAT16_NOT_SUPPORTED_MODELS`, since 0.9.1)."""
    if facts.version < Version(0, 9, 1):
        return frozenset()
    families = ["gemma2", "gemma3", "glm4"]
    families += ["gemma3_text"] if facts.version >= Version(0, 10, 2) else []
    families += ["plamo2"] if facts.version < Version(0, 27) else []
    return frozenset(("float16", family) for family in families)


def _max_model_len(args: EngineArgs, model: Model, facts: EngineFacts) -> int:
    if isinstance(args.max_model_len, int):
        return args.max_model_len
    return model.context.default(facts.version) or LENGTH_WITHOUT_A_KEY


def default_batch(gpu: Gpu, facts: EngineFacts) -> BatchDefaults:
    """Return the row of scheduler defaults this device takes (vLLM `EngineArgs.get_batch_defaults`)."""
    name = gpu.name.lower()
    return next(row for row in facts.batched_token_defaults if row.holds_for(gib(gpu.total_bytes), name))


def _chunked_prefill(args: EngineArgs, facts: EngineFacts, traits: Traits) -> bool:
    """Encoder-decoders take a prompt whole; until 0.11.0 all others took it in parts, whatever was asked."""
    if traits.encoder_decoder:
        return False
    asked = args.enable_chunked_prefill
    return True if asked is None or facts.chunked_prefill_is_forced else asked


def _batch(
    args: EngineArgs, gpu: Gpu, facts: EngineFacts, model: Model, world_size: int, max_model_len: int, *, chunked: bool
) -> tuple[int, int]:
    """Return (max_num_batched_tokens, max_num_seqs).

    Source: vLLM `EngineArgs._set_default_max_num_seqs_and_batched_tokens_args`, `_set_default_args_v1` before 0.11.
    """
    default_tokens, default_seqs = _batch_defaults(args, gpu, facts, world_size)
    seqs = args.max_num_seqs or default_seqs
    tokens = args.max_num_batched_tokens
    if tokens is None:
        tokens = max(default_tokens, max_model_len if not chunked else 0, _whole_item_tokens(args, model, facts))
        tokens = min(tokens, seqs * max_model_len) if facts.batch_capped_by_sequences else tokens
    if args.max_num_seqs or not facts.sequences_capped_by_batch:
        return tokens, seqs
    return tokens, min(seqs, tokens)


def _whole_item_tokens(args: EngineArgs, model: Model, facts: EngineFacts) -> int:
    """An item that the model attends to in both directions must fit one step (vLLM `is_mm_prefix_lm`, since 0.22)."""
    if facts.version < Version(0, 22) or args.asks("language_model_only"):
        return 0
    return model.decoder.whole_item_tokens or 0


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
    if facts.batched_dp_tokens is not None and _batched_experts(args):
        tokens = facts.batched_dp_tokens
    doubled = 2 if args.performance_mode == "throughput" else 1
    return tokens * doubled, seqs * doubled


def _batched_experts(args: EngineArgs) -> bool:
    """Experts over data-parallel ranks whose kernels take batches of a fixed size (vLLM `use_batched_dp_moe`)."""
    spread = bool(args.enable_expert_parallel) and (args.data_parallel_size or 1) > 1
    return spread and args.setting("all2all_backend") in ("deepep_low_latency", "nixl_ep")


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
