"""Write tests/fixtures/layers_vllm.json: what vLLM 0.32 caches for each layer of the catalog's models on emulated GPUs.

    python -m tests.engine.golden_layers PYTHON_OF_THE_ENGINE [CAPABILITY ...]

PYTHONPATH has to hold triton and torchvision for the engine's Python (see emulated_cuda.py). A few capabilities may be
named to ask for them alone; the answers of the others are kept. Run it again when a model or a release is added.
"""

import json
import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

ASK = Path(__file__).with_name("ask_vllm.py")
FIXTURE = Path(__file__).parents[1] / "fixtures" / "layers_vllm.json"
CATALOG = Path(__file__).parents[2] / "planner" / "catalog" / "models"
CAPABILITIES = ("8.0", "8.9", "9.0", "10.0", "12.0")
EVERY_MODEL_ON = "9.0"
FAMILIES = (
    "Qwen/Qwen3-8B",
    "meta-llama/Llama-3.1-8B-Instruct",
    "mistralai/Mistral-7B-v0.1",
    "google/gemma-2-9b",
    "google/gemma-3-1b-it",
    "google/gemma-3-4b-it",
    "google/gemma-3-27b-it",
    "google/gemma-4-31B-it",
    "google/gemma-4-E4B-it",
    "openai/gpt-oss-20b",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "deepseek-ai/DeepSeek-V2-Lite",
    "deepseek-ai/DeepSeek-V3",
    "deepseek-ai/DeepSeek-V3.2",
    "deepseek-ai/DeepSeek-V4-Flash",
    "zai-org/GLM-5.1",
    "nvidia/Kimi-K2.6-NVFP4",
    "moonshotai/Kimi-K3",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Qwen/Qwen3.6-27B",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "ai21labs/Jamba-v0.1",
    "MiniMaxAI/MiniMax-M2.5",
    "XiaomiMiMo/MiMo-V2-Flash",
    "allenai/Olmo-3-1025-7B",
    "openbmb/MiniCPM3-4B",
    "nvidia/Gemma-4-31B-IT-NVFP4",
)
FP8 = {"kv_cache_dtype": "fp8"}
VARIANTS = (
    ("Qwen/Qwen3-8B", {"tensor_parallel_size": 4}),
    ("Qwen/Qwen3-8B", {"tensor_parallel_size": 16}),
    ("Qwen/Qwen3-8B", {"pipeline_parallel_size": 2, "rank": 1}),
    ("Qwen/Qwen3-8B", FP8),
    ("Qwen/Qwen3-8B", {"kv_cache_dtype": "fp8_e5m2"}),
    ("Qwen/Qwen3-8B", {"kv_cache_dtype": "int8_per_token_head"}),
    ("Qwen/Qwen3-8B", {"kv_cache_dtype": "int4_per_token_head"}),
    ("Qwen/Qwen3-8B", {"kv_cache_dtype": "nvfp4"}),
    ("Qwen/Qwen3-8B", {"kv_cache_dtype": "nvfp4_4over6"}),
    ("Qwen/Qwen3-8B", {"kv_cache_dtype": "turboquant_k8v4"}),
    ("Qwen/Qwen3-8B", {"kv_cache_dtype": "turboquant_4bit_nc"}),
    ("Qwen/Qwen3-8B", {"kv_cache_dtype": "turboquant_k3v4_nc"}),
    ("Qwen/Qwen3-8B", {"kv_cache_dtype": "turboquant_3bit_nc"}),
    ("Qwen/Qwen3-8B", {**FP8, "flags": {"kv_cache_dtype_skip_layers": ["0", "1"]}}),
    ("Qwen/Qwen3-8B", {"kv_cache_dtype": "nvfp4", "flags": {"kv_cache_dtype_skip_layers": ["0"]}}),
    ("Qwen/Qwen3-8B", {"flags": {"block_size": 48}}),
    ("Qwen/Qwen3-8B", {"flags": {"block_size": 128}}),
    ("Qwen/Qwen3-8B", {"flags": {"block_size": 24}}),
    ("Qwen/Qwen3-8B", {"flags": {"attention_backend": "TRITON_ATTN"}}),
    ("Qwen/Qwen3-8B", {"flags": {"attention_backend": "FLASHINFER"}}),
    ("google/gemma-2-9b", {**FP8, "flags": {"kv_cache_dtype_skip_layers": ["sliding_window"]}}),
    ("google/gemma-2-9b", {"flags": {"attention_backend": "FLASH_ATTN"}}),
    ("google/gemma-2-9b", {"flags": {"block_size": 64}}),
    ("google/gemma-3-1b-it", {"flags": {"attention_backend": "FLASH_ATTN"}}),
    ("google/gemma-3-1b-it", {"flags": {"attention_backend": "FLASHINFER", "block_size": 128}}),
    ("google/gemma-4-31B-it", FP8),
    ("google/gemma-4-31B-it", {"tensor_parallel_size": 4}),
    ("openai/gpt-oss-20b", FP8),
    ("openai/gpt-oss-20b", {"flags": {"block_size": 32}}),
    ("deepseek-ai/DeepSeek-V2-Lite", FP8),
    ("deepseek-ai/DeepSeek-V3", {**FP8, "tensor_parallel_size": 8}),
    ("deepseek-ai/DeepSeek-V3", {"flags": {"block_size": 64}}),
    ("deepseek-ai/DeepSeek-V3", {"flags": {"attention_backend": "FLASHMLA"}}),
    ("deepseek-ai/DeepSeek-V3", {"flags": {"attention_backend": "CUTLASS_MLA"}}),
    ("deepseek-ai/DeepSeek-V3.2", FP8),
    ("deepseek-ai/DeepSeek-V3.2", {"kv_cache_dtype": "bfloat16"}),
    ("deepseek-ai/DeepSeek-V3.2", {"tensor_parallel_size": 8}),
    ("deepseek-ai/DeepSeek-V3.2", {"kv_cache_dtype": "nvfp4_ds_mla"}),
    ("deepseek-ai/DeepSeek-V4-Flash", FP8),
    ("deepseek-ai/DeepSeek-V4-Flash", {"kv_cache_dtype": "bfloat16"}),
    ("zai-org/GLM-5.1", FP8),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", {"tensor_parallel_size": 4}),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", {"flags": {"enable_prefix_caching": False}}),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", {"flags": {"mamba_ssm_cache_dtype": "float32"}}),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", FP8),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", {"flags": {"block_size": 1024}}),
    (
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        {"flags": {"speculative_config": {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}}},
    ),
    ("Qwen/Qwen3.6-27B", {"tensor_parallel_size": 2}),
    ("Qwen/Qwen3.6-27B", {"flags": {"mamba_ssm_cache_dtype": "bfloat16"}}),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {"tensor_parallel_size": 4}),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {"flags": {"enable_prefix_caching": False}}),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", FP8),
)
LEFT_OUT = frozenset(
    {"page_size_bytes", "max_tp_shards", "is_index_group_leader", "cache_dtype_str", "prefill_checkpoint_alignment"}
)


def catalog_config(name):
    """Return the config.json of a model of the catalog, without its remote code."""
    row = json.loads((CATALOG / f"{name.replace('/', '__')}.json").read_text())
    return {key: value for key, value in row["config"].items() if key != "auto_map"}


def questions_of(capability):
    """Return (model, settings) of one GPU: the families and their variants, and on one GPU every model."""
    every = sorted(path.stem.replace("__", "/") for path in CATALOG.glob("*.json"))
    plain = every if capability == EVERY_MODEL_ON else [name for name in FAMILIES if name in every]
    return [(name, {}) for name in plain] + [(name, settings) for name, settings in VARIANTS if name in every]


def ask(python, capability, questions):
    """Return one answer for each question, as the emulated GPU gives them."""
    lines = [json.dumps({"ask": "layers", "config": catalog_config(name), **settings}) for name, settings in questions]
    done = subprocess.run(
        [python, ASK],
        input="\n".join(lines) + "\n",
        env={**os.environ, "EMULATED_CAPABILITY": capability},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{capability}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def shortened(answer):
    """Return an answer with its layers as runs of equal caches, or the text of the refusal."""
    if "refused" in answer:
        return {"refused": f"{answer['refused']}: {answer['text'].splitlines()[0][:160] if answer['text'] else ''}"}
    caches = [
        {"backend": backend, "page": facts["page_size_bytes"]}
        | {key: value for key, value in facts.items() if key not in LEFT_OUT and value not in (False, "NONE")}
        for _, backend, facts in answer["layers"]
    ]
    distinct = list({json.dumps(cache): cache for cache in caches}.values())
    runs = [[len(list(run)), distinct.index(cache)] for cache, run in groupby(caches)]
    return {"block_size": answer["block_size"], "cache_dtype": answer["cache_dtype"], "caches": distinct, "runs": runs}


def main(python, *capabilities):
    """Ask and write the fixture, one answer a line."""
    kept = json.loads(FIXTURE.read_text()) if FIXTURE.exists() else {}
    for capability in capabilities or CAPABILITIES:
        questions = questions_of(capability)
        answers = map(shortened, ask(python, capability, questions))
        kept[capability] = [
            [name, settings, answer] for (name, settings), answer in zip(questions, answers, strict=True)
        ]
    parts = [f'"{capability}": {_lines(kept[capability])}' for capability in CAPABILITIES if capability in kept]
    FIXTURE.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _lines(rows):
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]"


if __name__ == "__main__":
    main(*sys.argv[1:])
