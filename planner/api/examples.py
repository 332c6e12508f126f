"""Examples that the documentation shows, and that a test sends."""

from drf_spectacular.utils import OpenApiExample

LLAMA_70B = {
    "model": "meta-llama/Meta-Llama-3-70B-Instruct",
    "gpu": "a100-sxm4-80gb",
    "gpu_count": 4,
    "vllm_version": "0.32.0",
    "args": {"tensor_parallel_size": 4, "max_model_len": 8192, "gpu_memory_utilization": 0.9},
}
AS_A_COMMAND = {
    "gpu": "NVIDIA A100-SXM4-80GB",
    "vllm_version": "0.32.0",
    "command": "vllm serve meta-llama/Meta-Llama-3-70B-Instruct -tp 4 --max-model-len 8k",
    "include": ["help"],
}
A_MIX = {
    **LLAMA_70B,
    "requests": [
        {"name": "signals", "share": 0.8, "prompt_tokens": 500, "output_tokens": 100},
        {"name": "filings", "share": 0.2, "prompt_tokens": 7000, "output_tokens": 500},
    ],
}
ESTIMATE_EXAMPLES = [
    OpenApiExample("Flags by name", value=LLAMA_70B, request_only=True),
    OpenApiExample("A command, and what would help", value=AS_A_COMMAND, request_only=True),
    OpenApiExample("A mix of requests", value=A_MIX, request_only=True),
]
A_SWEEP = {
    **LLAMA_70B,
    "axes": {"tensor_parallel_size": [1, 2, 4], "gpu_memory_utilization": [0.8, 0.85, 0.9, 0.95]},
}
SWEEP_EXAMPLES = [OpenApiExample("Ranks and shares of memory", value=A_SWEEP, request_only=True)]
TINY_LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 22,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}
MODEL_EXAMPLES = [
    OpenApiExample(
        "A config.json",
        value={"name": "our-team/tiny-llama-finetune", "config": TINY_LLAMA, "source": "our own checkpoint"},
        request_only=True,
    )
]
PLAN_EXAMPLES = [
    OpenApiExample("Save a plan", value={"name": "Llama 3 70B on one node", "inputs": LLAMA_70B}, request_only=True)
]
