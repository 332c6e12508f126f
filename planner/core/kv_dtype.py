"""Which dtype the KV cache gets: asked for, declared by the checkpoint, and which layers keep their own."""

from planner.core.attention_need import AttentionDevice
from planner.core.cache_content import is_boundary_kept, is_plain
from planner.core.cache_layer import AttentionCache
from planner.core.cache_request import CacheRequest
from planner.core.engine import EngineArgs, EngineFacts, Version
from planner.core.hardware import Gpu
from planner.core.json_flags import json_flag
from planner.core.model import Model
from planner.core.traits import distinct_layers

DECLARED_BY_MODELOPT = {"fp8": "fp8_e4m3", "nvfp4": "nvfp4"}
READ_AS_DEEPSEEK_V32 = frozenset({"DeepseekV32ForCausalLM"})
KEPT_AT_EACH_END = 2
MODELOPT_SINCE = Version(0, 14)
COMPRESSED_TENSORS_SINCE = Version(0, 15)
ASKING_WINS_SINCE = Version(0, 22)
GLM_FP8_SINCE = Version(0, 32)
NAMED_BY_FLAG_ONLY = Version(0, 15)
GEMMA_4_BY_FLASH_ATTENTION = Version(0, 24)
WIDEST = 512


def cache_request(args: EngineArgs, *, model: Model, gpu: Gpu, facts: EngineFacts) -> CacheRequest:
    """Return what a command asks of the caches, the dtype resolved."""
    dtype = kv_cache_dtype(args, model=model, gpu=gpu, facts=facts)
    return CacheRequest(
        kv_cache_dtype=dtype,
        block_size=args.block_size,
        attention_backend=attention_backend(args, facts) or forced_backend(model, gpu, facts),
        skipped=skipped_layers(args, model=model, kv_cache_dtype=dtype),
        mamba_block_size=_whole(args, "mamba_block_size"),
        mamba_cache_dtype=str(args.setting("mamba_cache_dtype") or "auto"),
        mamba_ssm_cache_dtype=str(args.setting("mamba_ssm_cache_dtype") or "auto"),
        decode_context_parallel_size=args.decode_context_parallel_size or 1,
        prefill_context_parallel_size=args.prefill_context_parallel_size or 1,
    )


def attention_backend(args: EngineArgs, facts: EngineFacts) -> str:
    """Return the backend that the command names, by flag or (until 0.14) by variable; "" where it names none."""
    configured = args.attention_backend or json_flag(args, "attention_config").get("backend")
    variable = args.env("VLLM_ATTENTION_BACKEND") if facts.version < NAMED_BY_FLAG_ONLY else None
    name = str(configured or variable or "").upper()
    return "" if name == "AUTO" else name


def forced_backend(model: Model, gpu: Gpu, facts: EngineFacts) -> str:
    """Return Triton where Gemma 4's two head sizes have no FlashAttention in common (vLLM `Gemma4Config`); else ""."""
    if not model.architecture.startswith("Gemma4") or gpu.is_cpu:
        return ""
    caches = (cache for layer in distinct_layers(model.decoder) for cache in layer.caches)
    heads = {cache.head_dim for cache in caches if isinstance(cache, AttentionCache)}
    device = AttentionDevice(capability=gpu.compute_capability or (0, 0), version=facts.version)
    in_common = facts.version >= GEMMA_4_BY_FLASH_ATTENTION and device.has_flash_attention_4 and max(heads) <= WIDEST
    return "TRITON_ATTN" if len(heads) > 1 and not in_common else ""


def _whole(args: EngineArgs, name: str) -> int | None:
    number = args.number(name)
    return None if number is None else int(number)


def kv_cache_dtype(args: EngineArgs, *, model: Model, gpu: Gpu, facts: EngineFacts) -> str:
    """Return `--kv-cache-dtype` as vLLM resolves it: "auto" where the cache keeps the model's own dtype.

    A checkpoint that declares a format for keys and values gets it when nobody asks for another.
    Source: vLLM `resolve_kv_cache_dtype_string` (0.14 on), `layers.attention.Attention` (0.15 on), and
    `model_executor.models.config` (`DeepseekV32ForCausalLM`, `GlmMoeDsaForCausalLM`).
    """
    asked = str(args.kv_cache_dtype or "auto")
    declared = declared_dtype(model, facts)
    if declared and (asked == "auto" or _is_overruled(model, facts)):
        return declared
    if model.traits.sparse:
        return _sparse_dtype(asked, model, gpu, facts)
    return asked


def declared_dtype(model: Model, facts: EngineFacts) -> str:
    """Return the cache dtype that the checkpoint's own declaration brings in this release; "" without one."""
    quantization = model.quantization
    if quantization is None or not quantization.kv_cache:
        return ""
    if quantization.method == "modelopt":
        return DECLARED_BY_MODELOPT.get(quantization.kv_cache, "") if facts.version >= MODELOPT_SINCE else ""
    heads = not model.traits.latent
    compressed = quantization.method == "compressed-tensors" and facts.version >= COMPRESSED_TENSORS_SINCE
    return "fp8" if heads and compressed and quantization.kv_cache == "fp8" else ""


def _is_overruled(model: Model, facts: EngineFacts) -> bool:
    """A compressed-tensors checkpoint had its way whatever was asked until 0.21."""
    quantization = model.quantization
    compressed = quantization is not None and quantization.method == "compressed-tensors"
    return compressed and facts.version < ASKING_WINS_SINCE


def _sparse_dtype(asked: str, model: Model, gpu: Gpu, facts: EngineFacts) -> str:
    version = facts.version
    if model.architecture == "GlmMoeDsaForCausalLM":
        on_blackwell = not gpu.is_cpu and gpu.compute_capability is not None and gpu.compute_capability[0] == 10
        return "fp8_e4m3" if asked == "auto" and on_blackwell and version >= GLM_FP8_SINCE else asked
    if model.architecture not in READ_AS_DEEPSEEK_V32:
        return asked
    if asked == "bfloat16":
        return "auto"
    first_release = version < Version(0, 11, 1) and asked == "auto"
    packed = version < Version(0, 18) and asked.startswith("fp8")
    return "fp8_ds_mla" if first_release or packed else asked


def skipped_layers(args: EngineArgs, *, model: Model, kv_cache_dtype: str) -> frozenset[str]:
    """Return what keeps the model's dtype: layer numbers as text, or a kind such as "sliding_window".

    Source: vLLM `CacheConfig.kv_cache_dtype_skip_layers`, `TurboQuantConfig.get_boundary_skip_layers` (0.20 on).
    """
    asked = frozenset(str(args.setting("kv_cache_dtype_skip_layers") or "").replace(",", " ").split())
    if is_plain(kv_cache_dtype) or not is_boundary_kept(kv_cache_dtype) or model.traits.hybrid:
        return asked
    count = model.num_layers
    ends = min(KEPT_AT_EACH_END, count // 2)
    return asked | {str(i) for i in (*range(ends), *range(count - ends, count))}
