"""Commands whose resolution vLLM's own configuration code judges: a model of the catalog, a GPU, flags."""

GPUS = {
    "h100": ["NVIDIA H100 80GB HBM3", 79.19, [9, 0]],
    "h200": ["NVIDIA H200", 139.8, [9, 0]],
    "a100": ["NVIDIA A100-SXM4-80GB", 79.15, [8, 0]],
    "b200": ["NVIDIA B200", 178.36, [10, 0]],
    "l40s": ["NVIDIA L40S", 44.4, [8, 9]],
    "4090": ["NVIDIA GeForce RTX 4090", 23.53, [8, 9]],
    "t4": ["Tesla T4", 14.58, [7, 5]],
    "gb10": ["NVIDIA GB10", 121.69, [12, 1]],
    "pro6000": ["NVIDIA RTX PRO 6000 Blackwell Server Edition", 94.97, [12, 0]],
}
DENSE = "meta-llama/Llama-3.1-8B-Instruct"
SMALL = "Qwen/Qwen3-8B"
EXPERTS = "Qwen/Qwen3-30B-A3B"
LATENT = "deepseek-ai/DeepSeek-V2-Lite"
SPARSE = "deepseek-ai/DeepSeek-V3.2"
HYBRID = "Qwen/Qwen3-Next-80B-A3B-Instruct"
MAMBA = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
WINDOWS = "google/gemma-3-1b-it"
GEMMA_2 = "google/gemma-2-9b-it"
GPT_OSS = "openai/gpt-oss-20b"
SEES = "Qwen/Qwen2.5-VL-7B-Instruct"
CHUNKED = "RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic"
FP8 = "Qwen/Qwen3-8B-FP8"
AWQ = "Qwen/Qwen2.5-72B-Instruct-AWQ"
NVFP4 = "nvidia/Gemma-4-31B-IT-NVFP4"
MODELS = (
    DENSE,
    SMALL,
    EXPERTS,
    LATENT,
    SPARSE,
    HYBRID,
    MAMBA,
    WINDOWS,
    GEMMA_2,
    GPT_OSS,
    SEES,
    CHUNKED,
    FP8,
    AWQ,
    NVFP4,
    "facebook/opt-1.3b",
    "deepseek-ai/DeepSeek-V3",
    "deepseek-ai/DeepSeek-V4-Flash",
    "google/gemma-4-31B-it",
    "google/gemma-4-E4B-it",
    "ibm-granite/granite-3.3-8b-instruct",
    "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "mistralai/Mistral-7B-Instruct-v0.3",
    "microsoft/Phi-3-mini-4k-instruct",
    "Qwen/Qwen3-VL-30B-A3B-Instruct",
    "Qwen/Qwen3.5-27B",
    "zai-org/GLM-4.5-Air",
    "zai-org/GLM-5",
)
NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}
MTP = {"method": "mtp", "num_speculative_tokens": 3}


def command(model, gpu="h100", *, usage="server", environment=None, gpus=8, **flags):
    """Return one question, without the parts that are as usual."""
    question = {"model": model, "gpu": gpu, "flags": flags}
    if usage != "server":
        question["usage"] = usage
    if environment:
        question["environment"] = environment
    if gpus != 8:
        question["gpus"] = gpus
    return question


def _flags():
    """Flags that change what others come to, each on a model that it concerns."""
    for flags in (
        {"max_num_seqs": 4},
        {"max_num_seqs": 4, "max_model_len": 512},
        {"max_num_seqs": 300},
        {"max_num_seqs": 777},
        {"max_num_batched_tokens": 100},
        {"max_num_batched_tokens": 300},
        {"max_num_batched_tokens": 4096, "max_model_len": 2048},
        {"enable_chunked_prefill": False, "max_model_len": 10000},
        {"performance_mode": "throughput"},
        {"performance_mode": "throughput", "max_num_seqs": 100},
        {"performance_mode": "interactivity"},
        {"performance_mode": "interactivity", "max_num_seqs": 5},
        {"enforce_eager": True},
        {"optimization_level": 0},
        {"optimization_level": 1},
        {"optimization_level": 3},
        {"compilation_config": {"mode": 0}},
        {"compilation_config": {"cudagraph_mode": "PIECEWISE"}},
        {"compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY"}},
        {"compilation_config": {"cudagraph_mode": "NONE"}},
        {"compilation_config": {"mode": 0, "cudagraph_mode": "PIECEWISE"}},
        {"cudagraph_capture_sizes": [1, 2, 4, 9000]},
        {"max_cudagraph_capture_size": 100},
        {"max_cudagraph_capture_size": 600, "max_num_seqs": 333},
        {"async_scheduling": False},
        {"enable_prefix_caching": False},
        {"tensor_parallel_size": 2},
        {"pipeline_parallel_size": 2},
        {"pipeline_parallel_size": 2, "async_scheduling": False},
        {"data_parallel_size": 2},
        {"speculative_config": NGRAM},
        {"speculative_config": NGRAM, "max_num_seqs": 20},
        {"speculative_config": {**NGRAM, "num_speculative_tokens": 16}, "max_num_seqs": 512},
        {"dtype": "float16"},
        {"dtype": "float32"},
        {"gpu_memory_utilization": 0.5},
    ):
        yield command(DENSE, **flags)
    for usage in ("server", "offline"):
        for gpu in GPUS:
            yield command(DENSE, gpu, usage=usage)
    yield command(DENSE, environment={"VLLM_USE_V2_MODEL_RUNNER": "0"})
    yield command(DENSE, environment={"VLLM_USE_V2_MODEL_RUNNER": "0"}, pipeline_parallel_size=2)
    yield command(DENSE, "b200", max_num_seqs=2000, max_num_batched_tokens=16384)
    yield command(GPT_OSS, "b200")
    yield command(GPT_OSS, max_num_seqs=333)
    yield command(GPT_OSS, max_cudagraph_capture_size=64)
    yield command(GPT_OSS, "4090", max_num_batched_tokens=512)
    yield command(GEMMA_2, "t4")
    yield command(WINDOWS, "t4")
    yield command("facebook/opt-1.3b", dtype="bfloat16")
    yield command(HYBRID, enable_prefix_caching=False)
    yield command(HYBRID, enable_prefix_caching=True, mamba_cache_mode="align")
    yield command(HYBRID, speculative_config=MTP)
    yield command(HYBRID, speculative_config=MTP, max_num_seqs=512)
    yield command(MAMBA, enable_prefix_caching=False)
    yield command(MAMBA, mamba_ssm_cache_dtype="float16")
    for backend in ("deepep_low_latency", "deepep_high_throughput", "allgather_reducescatter"):
        yield command(
            EXPERTS, enable_expert_parallel=True, data_parallel_size=2, tensor_parallel_size=2, all2all_backend=backend
        )
    yield command("google/gemma-4-31B-it", "4090")
    yield command("google/gemma-4-31B-it", "4090", language_model_only=True)
    yield command(CHUNKED, environment={"VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE": "1"})


def _refused_and_their_neighbours():
    """In pairs: a command that a rule refuses, and one beside it that passes."""
    yield command(DENSE, tensor_parallel_size=3)
    yield command(DENSE, tensor_parallel_size=4)
    yield command(DENSE, enable_expert_parallel=True)
    yield command(EXPERTS, enable_expert_parallel=True, tensor_parallel_size=2)
    yield command(EXPERTS, enable_eplb=True, tensor_parallel_size=2)
    yield command(EXPERTS, enable_eplb=True, enable_expert_parallel=True)
    yield command(EXPERTS, enable_eplb=True, enable_expert_parallel=True, tensor_parallel_size=2)
    yield command(LATENT, tensor_parallel_size=4, decode_context_parallel_size=3)
    yield command(LATENT, tensor_parallel_size=4, decode_context_parallel_size=2)
    yield command(DENSE, tensor_parallel_size=8, decode_context_parallel_size=2)
    yield command(DENSE, tensor_parallel_size=16, decode_context_parallel_size=4, gpus=16)
    yield command(DENSE, tensor_parallel_size=16, decode_context_parallel_size=2, gpus=16)
    yield command(DENSE, enable_chunked_prefill=False, max_num_batched_tokens=4096)
    yield command(DENSE, enable_chunked_prefill=False, max_num_batched_tokens=4096, max_model_len=4096)
    yield command(DENSE, max_num_seqs=512, max_num_batched_tokens=256)
    yield command(DENSE, max_num_seqs=256, max_num_batched_tokens=256)
    yield command(DENSE, max_num_active_seqs=300, max_num_seqs=256)
    yield command(DENSE, max_num_active_seqs=256, max_num_seqs=256)
    yield command(DENSE, long_prefill_token_threshold=5000, max_model_len=4096)
    yield command(DENSE, long_prefill_token_threshold=4096, max_model_len=4096)
    yield command(DENSE, gpu_memory_utilization=1.5)
    yield command(DENSE, gpu_memory_utilization=1.0)
    yield command(DENSE, max_model_len=131073)
    yield command(DENSE, max_model_len=131072)
    yield command(DENSE, max_model_len=131073, environment={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"})
    yield command(DENSE, tensor_parallel_size=4, gpus=2)
    yield command(DENSE, tensor_parallel_size=2, gpus=2)
    yield command(DENSE, data_parallel_size=2, data_parallel_rank=0)
    yield command(EXPERTS, data_parallel_size=2, data_parallel_rank=0)
    yield command(DENSE, environment={"VLLM_DP_SIZE": "2"})
    yield command(EXPERTS, environment={"VLLM_DP_SIZE": "2"})
    yield command(FP8, quantization="awq")
    yield command(FP8, quantization="fp8")
    yield command(DENSE, quantization="gguf")
    yield command(DENSE, quantization="bitsandbytes")
    yield command(DENSE, quantization="fp8")
    yield command(DENSE, quantization="fp8_per_tensor")
    yield command(DENSE, quantization="fp_quant")
    yield command(DENSE, quantization="fp_quant", allow_deprecated_quantization=True)
    yield command(GPT_OSS, "t4")
    yield command(GPT_OSS, "a100")
    yield command(GPT_OSS, dtype="float16")
    yield command(FP8, dtype="float32")
    yield command(FP8, dtype="float16")
    yield command(GEMMA_2, dtype="float16")
    yield command(GEMMA_2, dtype="float32")
    yield command(DENSE, enable_lora=True, max_loras=4, max_cpu_loras=2)
    yield command(DENSE, enable_lora=True, max_loras=4, max_cpu_loras=4)
    yield command(DENSE, enable_lora=True, speculative_config=NGRAM, max_num_seqs=1024, max_num_batched_tokens=4096)
    yield command(DENSE, enable_lora=True, speculative_config=NGRAM, max_num_seqs=256, max_num_batched_tokens=4096)
    yield command(DENSE, speculative_config=NGRAM, async_scheduling=True)
    yield command(DENSE, speculative_config={**NGRAM, "method": "ngram_gpu"}, async_scheduling=True)
    yield command(DENSE, async_scheduling=True, distributed_executor_backend="external_launcher")
    yield command(CHUNKED, disable_hybrid_kv_cache_manager=False)
    yield command(WINDOWS, disable_hybrid_kv_cache_manager=False)
    yield command(HYBRID, mamba_block_size=1024, enable_prefix_caching=False)
    yield command(HYBRID, mamba_block_size=1024)
    yield command(HYBRID, enable_chunked_prefill=False, max_model_len=8192)
    yield command(HYBRID, enable_chunked_prefill=False, max_model_len=8192, enable_prefix_caching=False)
    yield command(LATENT, "b200", kv_cache_dtype="nvfp4")
    yield command(LATENT, "b200", kv_cache_dtype="fp8")
    yield command(DENSE, cudagraph_capture_sizes=[1, 2, 4], max_cudagraph_capture_size=8)
    yield command(DENSE, cudagraph_capture_sizes=[1, 2, 4, 8], max_cudagraph_capture_size=8)
    yield command(SEES, mm_tensor_ipc="torch_shm")
    yield command(SEES, mm_tensor_ipc="torch_shm", environment={"VLLM_WORKER_MULTIPROC_METHOD": "spawn"})
    yield command(
        SEES,
        mm_tensor_ipc="torch_shm",
        tensor_parallel_size=2,
        environment={"VLLM_WORKER_MULTIPROC_METHOD": "spawn"},
    )
    yield command(DENSE, pipeline_parallel_size=2, async_scheduling=True, environment={"VLLM_USE_V2_MODEL_RUNNER": "0"})
    yield command(DENSE, prefill_context_parallel_size=2, environment={"VLLM_USE_V2_MODEL_RUNNER": "0"})
    yield command(DENSE, offload_group_size=4, offload_num_in_group=5)
    yield command(DENSE, offload_group_size=4, offload_num_in_group=4)
    yield command(DENSE, offload_group_size=4, offload_prefetch_step=0)


def commands():
    """Return every question, in the order of the fixture."""
    defaults = [command(model, gpu) for model in MODELS for gpu in ("h100", "a100", "b200")]
    return [*defaults, *_flags(), *_refused_and_their_neighbours()]
