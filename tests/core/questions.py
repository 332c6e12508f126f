"""Questions for tests of the core: real config.json facts, real devices, hand-written version facts."""

from planner.catalog.fitted import fit
from planner.core.engine import EngineArgs
from planner.core.estimate import Question
from planner.core.hardware import Gpu
from planner.core.model import model_from_config
from planner.core.units import GIB, bytes_from_gib
from tests.core.facts import FACTS_032

LLAMA_3_70B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "vocab_size": 128256,
}
LLAMA_2_70B = {
    **LLAMA_3_70B,
    "torch_dtype": "float16",
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "vocab_size": 32000,
}
LLAMA_3_8B = {
    **LLAMA_3_70B,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
}
TINY = {
    **LLAMA_3_70B,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 2048,
}


def gpu(name, low_gib, gib, high_gib, capability):
    return Gpu(
        slug=name.lower().replace(" ", "-"),
        name=name,
        device_type="cuda",
        total_bytes=bytes_from_gib(gib),
        total_low_bytes=bytes_from_gib(low_gib),
        total_high_bytes=bytes_from_gib(high_gib),
        compute_capability=capability,
    )


A100 = gpu("A100 SXM4 80GB", 79.14, 79.15, 79.35, (8, 0))
H100 = gpu("H100 SXM5 80GB", 79.10, 79.19, 79.19, (9, 0))
T4 = gpu("T4", 14.56, 14.75, 14.76, (7, 5))
LAPTOP = Gpu(
    slug="cpu",
    name="CPU",
    device_type="cpu",
    total_bytes=24 * GIB,
    total_low_bytes=24 * GIB,
    total_high_bytes=24 * GIB,
)


def ask(config=LLAMA_3_8B, device=H100, facts=FACTS_032, *, gpu_count=None, free_bytes=None, requests=(), **flags):
    """Return a question about `vllm serve` with these flags."""
    return Question(
        model=model_from_config(config, name="tested"),
        gpu=device,
        gpu_count=gpu_count,
        facts=facts,
        args=EngineArgs(**flags),
        fit=fit(),
        free_bytes=free_bytes,
        requests=requests,
    )
