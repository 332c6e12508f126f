"""Every rule of the catalog that a command can break: one that does, and its neighbour that does not."""

from dataclasses import replace
from functools import partial

import pytest

from planner import catalog
from planner.core.capacity import RequestClass
from planner.core.estimate import case_of
from planner.core.model import model_from_config
from planner.core.rules import broken_rules
from planner.readers.command import read_fields
from tests.core.questions import A100, H100, LAPTOP, T4, TINY, ask, gpu

B200 = gpu("B200", 178.36, 178.36, 178.36, (10, 0))
L40S = gpu("L40S", 44.4, 44.4, 44.4, (8, 9))
V100 = gpu("V100 16GB", 15.77, 15.77, 15.77, (7, 0))
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
EXPERTS = "Qwen/Qwen3-30B-A3B"
LATENT = "deepseek-ai/DeepSeek-V2-Lite"
SPARSE = "deepseek-ai/DeepSeek-V3.2"
HYBRID = "Qwen/Qwen3-Next-80B-A3B-Instruct"
MAMBA = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
GEMMA_2 = "google/gemma-2-9b-it"
GEMMA_4 = "google/gemma-4-31B-it"
GPT_OSS = "openai/gpt-oss-20b"
SEES = "Qwen/Qwen2.5-VL-7B-Instruct"
CHUNKED = "meta-llama/Llama-4-Scout-17B-16E-Instruct"
FP8 = "Qwen/Qwen3-8B-FP8"
SEED_OSS = "ByteDance-Seed/Seed-OSS-36B-Instruct"
FBGEMM = "meta-llama/Llama-3.1-405B-Instruct-FP8"
NGRAM = '{"method": "ngram", "num_speculative_tokens": 4}'
ON_THE_CPU = {"device": LAPTOP, "kv_cache_memory_bytes": 1 << 26}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False}
PACKED = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 4, "type": "int", "group_size": 128, "strategy": "group", "symmetric": True},
        }
    },
    "ignore": ["lm_head"],
}
WIDE = {**TINY, "num_attention_heads": 48, "num_key_value_heads": 8, "hidden_size": 6144, "intermediate_size": 6144}
LONG_PROMPTS = (RequestClass(name="long", prompt_tokens=8192, output_tokens=1),)
SHORT_PROMPTS = (RequestClass(name="short", prompt_tokens=8191, output_tokens=1),)


def narrow(quantization, *, heads=8, width=1024):
    """Return a small model whose shares of a rank are odd at high TP, quantised that way."""
    return {
        **TINY,
        "hidden_size": 1024,
        "intermediate_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "vocab_size": 32000,
        "quantization_config": quantization,
    }


def q(*model, **asked):
    """Return how to ask a question, so that a model that cannot be read fails its own test."""
    return partial(question_about, *model, **asked)


def question_about(
    model=LLAMA, *, version="0.32.0", device=H100, config=None, environment=None, usage="server", **rest
):
    """Return a question: a model of the catalog (or a config), a release, and flags as a command gives them."""
    asked = {name: rest.pop(name) for name in ("gpu_count", "free_bytes", "requests") if name in rest}
    facts = catalog.engine_facts(version)
    args = read_fields(rest, version=facts.version, model=model, environment=environment or {})
    config = catalog.find_config(model) if config is None else config
    question = ask(dict(config), device, facts, **asked)
    return replace(question, model=model_from_config(config, name=model), args=args)


def embeds_only():
    """Return a question about a model that only embeds: its reader is another matter."""
    question = question_about()
    return replace(question, model=replace(question.model, architecture="BertModel"))


def with_18_heads_in_its_tower():
    """Return a model that sees, with a tower that 4 ranks cannot split."""
    config = catalog.find_config(SEES)
    return {**config, "vision_config": {**config["vision_config"], "num_heads": 18, "hidden_size": 1296}}


def chunked():
    """Return the language model of a Llama 4, which attends within chunks."""
    config = catalog.find_config(CHUNKED)
    return {**config["text_config"], "architectures": ["Llama4ForCausalLM"]}


SPAWN = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
V1 = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
BEFORE_MEMORY = {
    "max_model_len_gt_derived": (q(max_model_len=131073), q(max_model_len=131072)),
    "max_model_len_not_positive": (q(max_model_len=0), q(max_model_len=1)),
    "fp16_unsupported_model": (q(GEMMA_2, dtype="float16"), q(GEMMA_2, dtype="bfloat16")),
    "bf16_lt_sm80": (q(config=TINY, device=T4, dtype="bfloat16"), q(config=TINY, device=T4, dtype="float16")),
    "bf16_auto_fallback": (q(config=TINY, device=T4), q(config=TINY, device=A100)),
    "quant_mismatch": (q(FP8, quantization="awq"), q(FP8, quantization="fp8")),
    "quant_unknown": (q(quantization="gguf"), q(version="0.23.0", quantization="gguf")),
    "quant_capability": (q(GPT_OSS, device=T4), q(GPT_OSS, device=A100)),
    "quant_dtype": (q(GPT_OSS, dtype="float16"), q(GPT_OSS)),
    "quant_deprecated": (q(FBGEMM), q(FBGEMM, allow_deprecated_quantization=True)),
    "fp8_online_removed": (q(quantization="fp8"), q(quantization="fp8", version="0.30.0")),
    "heads_tp": (q(tensor_parallel_size=3), q(tensor_parallel_size=4)),
    "kvheads_tp": (
        q(config=WIDE, tensor_parallel_size=6),
        q(config=WIDE, tensor_parallel_size=8),
    ),
    "dim_tp": (
        q(config={**TINY, "intermediate_size": 516}, tensor_parallel_size=8),
        q(config={**TINY, "intermediate_size": 516}, tensor_parallel_size=4),
    ),
    "tower_tp": (
        q(config=with_18_heads_in_its_tower(), tensor_parallel_size=4),
        q(SEES, tensor_parallel_size=4),
    ),
    "pp_partition_len": (
        q(pipeline_parallel_size=2, environment={"VLLM_PP_LAYER_PARTITION": "16,17"}),
        q(pipeline_parallel_size=2, environment={"VLLM_PP_LAYER_PARTITION": "15,17"}),
    ),
    "arch_unsupported": (q(SEED_OSS, version="0.8.5"), q(SEED_OSS)),
    "ep_dense": (q(enable_expert_parallel=True), q(EXPERTS, enable_expert_parallel=True)),
    "eplb_needs_ep": (
        q(EXPERTS, enable_eplb=True, enable_expert_parallel=True),
        q(EXPERTS, enable_eplb=True, enable_expert_parallel=True, tensor_parallel_size=2),
    ),
    "world_gt_gpus": (q(tensor_parallel_size=4, gpu_count=2), q(tensor_parallel_size=2, gpu_count=2)),
    "dp_rank_bounds": (q(data_parallel_size=4, gpu_count=2), q(data_parallel_size=2, gpu_count=2)),
    "dp_dense_external": (
        q(data_parallel_size=2, data_parallel_rank=0),
        q(EXPERTS, data_parallel_size=2, data_parallel_rank=0),
    ),
    "dp_dense_offline": (q(environment={"VLLM_DP_SIZE": "2"}), q(EXPERTS, environment={"VLLM_DP_SIZE": "2"})),
    "dcp_tp": (
        q(LATENT, tensor_parallel_size=4, decode_context_parallel_size=3),
        q(LATENT, tensor_parallel_size=4, decode_context_parallel_size=2),
    ),
    "dcp_gqa": (
        q(tensor_parallel_size=8, decode_context_parallel_size=2),
        q(tensor_parallel_size=16, decode_context_parallel_size=2),
    ),
    "batched_lt_len_nochunk": (
        q(enable_chunked_prefill=False, max_num_batched_tokens=4096),
        q(enable_chunked_prefill=False, max_num_batched_tokens=4096, max_model_len=4096),
    ),
    "batched_lt_seqs": (
        q(max_num_seqs=512, max_num_batched_tokens=256),
        q(max_num_seqs=256, max_num_batched_tokens=256),
    ),
    "active_gt_seqs": (
        q(max_num_active_seqs=300, max_num_seqs=256),
        q(max_num_active_seqs=256, max_num_seqs=256),
    ),
    "batched_gt_seqs_len": (
        q(max_num_seqs=2, max_model_len=1024, max_num_batched_tokens=2049),
        q(max_num_seqs=2, max_model_len=1024, max_num_batched_tokens=2048),
    ),
    "long_prefill_gt_len": (
        q(max_model_len=4096, long_prefill_token_threshold=4097),
        q(max_model_len=4096, long_prefill_token_threshold=4096),
    ),
    "util_range": (q(gpu_memory_utilization=1.01), q(gpu_memory_utilization=0.5)),
    "spec_slots": (
        q(
            speculative_config='{"method": "dflash", "num_speculative_tokens": 16}',
            max_num_batched_tokens=16,
            max_num_seqs=4,
        ),
        q(
            speculative_config='{"method": "dflash", "num_speculative_tokens": 15}',
            max_num_batched_tokens=16,
            max_num_seqs=4,
        ),
    ),
    "lora_spec_tokens": (
        q(enable_lora=True, speculative_config=NGRAM, max_num_seqs=820, max_num_batched_tokens=4096),
        q(enable_lora=True, speculative_config=NGRAM, max_num_seqs=819, max_num_batched_tokens=4096),
    ),
    "lora_cpu_lt": (
        q(enable_lora=True, max_loras=4, max_cpu_loras=3),
        q(enable_lora=True, max_loras=4, max_cpu_loras=4),
    ),
    "async_incompat": (
        q(speculative_config=NGRAM, async_scheduling=True),
        q(speculative_config=NGRAM.replace("ngram", "ngram_gpu"), async_scheduling=True),
    ),
    "hma_explicit": (
        q(config=chunked(), disable_hybrid_kv_cache_manager=False),
        q(GEMMA_2, disable_hybrid_kv_cache_manager=False),
    ),
    "mamba_block_noprefix": (
        q(HYBRID, mamba_block_size=1024, enable_prefix_caching=False),
        q(HYBRID, mamba_block_size=1024),
    ),
    "mamba_align_chunked": (
        q(HYBRID, enable_chunked_prefill=False, max_model_len=8192),
        q(HYBRID, enable_chunked_prefill=False, max_model_len=8192, enable_prefix_caching=False),
    ),
    "nvfp4_kv_mla": (
        q(LATENT, device=B200, kv_cache_dtype="nvfp4"),
        q(LATENT, device=B200, kv_cache_dtype="fp8"),
    ),
    "prefix_match_unit": (q(prefix_match_unit=8), q(prefix_match_unit=16)),
    "graph_sizes_conflict": (
        q(cudagraph_capture_sizes=[1, 2, 4], max_cudagraph_capture_size=8),
        q(cudagraph_capture_sizes=[1, 2, 4, 8], max_cudagraph_capture_size=8),
    ),
    "torch_shm_spawn": (q(SEES, mm_tensor_ipc="torch_shm"), q(SEES, mm_tensor_ipc="torch_shm", environment=SPAWN)),
    "sleep_unsupported": (q(config=TINY, enable_sleep_mode=True, **ON_THE_CPU), q(config=TINY, enable_sleep_mode=True)),
    "mm_item_gt_tokens": (
        q(SEES, disable_chunked_mm_input=True, max_num_batched_tokens=1024, max_num_seqs=8),
        q(SEES, max_num_batched_tokens=1024, max_num_seqs=8),
    ),
    "runner_generate": (embeds_only, q()),
    "v1_runner_features": (
        q(pipeline_parallel_size=2, async_scheduling=True, environment=V1),
        q(pipeline_parallel_size=2, environment=V1),
    ),
    "kv_promote_fail": (q(HYBRID, disable_hybrid_kv_cache_manager=True), q(HYBRID)),
    "kv_layout": (q(environment={"VLLM_KV_CACHE_LAYOUT": "XYZ"}), q(environment={"VLLM_KV_CACHE_LAYOUT": "HND"})),
    "attn_none": (q(block_size=24), q(block_size=32)),
    "attn_selected_invalid": (q(attention_backend="FLASHMLA"), q(attention_backend="FLASHINFER")),
    "fp8_kv_triton": (
        q(config=TINY, device=T4, kv_cache_dtype="fp8"),
        q(config={**TINY, "head_dim": 64}, device=L40S, kv_cache_dtype="fp8"),
    ),
    "fp8_kv_fa": (
        q(device=A100, kv_cache_dtype="fp8", attention_backend="FLASH_ATTN"),
        q(kv_cache_dtype="fp8", attention_backend="FLASH_ATTN"),
    ),
    "e5m2_fp8_ckpt": (q(FP8, kv_cache_dtype="fp8_e5m2"), q(FP8, kv_cache_dtype="fp8_e4m3")),
    "fp8_block_k": (
        q(config=narrow({"quant_method": "fp8", "weight_block_size": [128, 128]}, width=2112), tensor_parallel_size=4),
        q(config=narrow({"quant_method": "fp8", "weight_block_size": [128, 128]}, width=2048), tensor_parallel_size=4),
    ),
    "fp8_block_n": (
        q(config=narrow({"quant_method": "fp8", "weight_block_size": [128, 128]}, heads=16), tensor_parallel_size=16),
        q(config=narrow({"quant_method": "fp8", "weight_block_size": [128, 128]}, heads=16), tensor_parallel_size=8),
    ),
    "marlin_n": (
        q(config=narrow(GPTQ, width=1040), version="0.23.0"),
        q(config=narrow(GPTQ, width=1040), version="0.24.0"),
    ),
    "marlin_k": (
        q(config=narrow(GPTQ), tensor_parallel_size=16, version="0.24.0"),
        q(config=narrow(GPTQ), tensor_parallel_size=8, version="0.24.0"),
    ),
    "no_scaled_mm_kernel": (
        q(config=narrow(PACKED), tensor_parallel_size=16),
        q(config=narrow(PACKED), tensor_parallel_size=8),
    ),
    "offload_group": (
        q(offload_group_size=4, offload_num_in_group=5),
        q(offload_group_size=4, offload_num_in_group=4),
    ),
    "prompt_gt_len": (q(max_model_len=8192, requests=LONG_PROMPTS), q(max_model_len=8192, requests=SHORT_PROMPTS)),
}


@pytest.mark.parametrize("rule", BEFORE_MEMORY)
def test_a_rule_before_memory_speaks_of_its_command_and_not_of_the_neighbour(rule):
    breaks, neighbour = BEFORE_MEMORY[rule]
    assert rule in {reason.rule for reason in broken_rules(case_of(breaks()))}
    assert rule not in {reason.rule for reason in broken_rules(case_of(neighbour()))}


@pytest.mark.parametrize("rule", BEFORE_MEMORY)
def test_a_rule_is_held_by_the_release_it_was_broken_in(rule):
    known = {each.id: each for each in catalog.rules()}
    assert known[rule].holds(BEFORE_MEMORY[rule][0]().facts.version)
