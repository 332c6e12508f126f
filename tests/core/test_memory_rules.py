"""Every rule of the catalog that only sizing a boot breaks: a command that does, and its neighbour that does not."""

import pytest

from planner.core.estimate import estimate
from planner.core.units import GIB
from tests.core.questions import LAPTOP, TINY
from tests.core.test_rules_table import MAMBA, SEES, q

WHISPER = {
    "architectures": ["WhisperForConditionalGeneration"],
    "model_type": "whisper",
    "torch_dtype": "float16",
    "d_model": 1280,
    "encoder_layers": 32,
    "encoder_attention_heads": 20,
    "encoder_ffn_dim": 5120,
    "decoder_layers": 32,
    "decoder_attention_heads": 20,
    "decoder_ffn_dim": 5120,
    "max_source_positions": 1500,
    "max_target_positions": 448,
    "num_mel_bins": 128,
    "vocab_size": 51866,
    "is_encoder_decoder": True,
}
BIG = "meta-llama/Llama-3.3-70B-Instruct"
IN_A_LOG = frozenset({"engine_init_failed", "worker_init_failed", "shm_broadcast_wait"})
SIZED = {
    "free_memory": (q(free_bytes=60 * GIB), q(free_bytes=60 * GIB, gpu_memory_utilization=0.7)),
    "free_changed": (
        q(free_bytes=60 * GIB, gpu_memory_utilization=0.7),
        q(gpu_memory_utilization=0.7),
    ),
    "no_kv_memory": (q(gpu_memory_utilization=0.2), q(gpu_memory_utilization=0.5)),
    "kv_one_request": (q(gpu_memory_utilization=0.3), q(gpu_memory_utilization=0.3, max_model_len=8192)),
    "autofit_fail": (q(gpu_memory_utilization=0.2, max_model_len=-1), q(gpu_memory_utilization=0.5, max_model_len=-1)),
    "kv_max_len_v0": (
        q(version="0.8.5", environment={"VLLM_USE_V1": "0"}, gpu_memory_utilization=0.3),
        q(version="0.8.5", gpu_memory_utilization=0.3),
    ),
    "v0_engine": (q(version="0.8.5", environment={"VLLM_USE_V1": "0"}), q(version="0.8.5")),
    "mamba_blocks_lt_seqs": (
        q(MAMBA, gpu_memory_utilization=0.83, max_num_seqs=1024),
        q(MAMBA, gpu_memory_utilization=0.83, max_num_seqs=16),
    ),
    "mm_ipc_reserve": (q(SEES, mm_ipc_gpu_memory_gb=70), q(SEES, mm_ipc_gpu_memory_gb=7)),
    "sampler_oom": (
        q(
            version="0.20.2",
            environment={"VLLM_USE_V2_MODEL_RUNNER": "0"},
            max_num_seqs=40000,
            max_num_batched_tokens=40000,
        ),
        q(version="0.20.2"),
    ),
    "torch_oom": (q(BIG), q(BIG, tensor_parallel_size=4)),
    "cpu_startup_mem": (q(config=TINY, device=LAPTOP, free_bytes=8 * GIB), q(config=TINY, device=LAPTOP)),
    "cpu_kv_mem": (
        q(config=TINY, device=LAPTOP, kv_cache_memory_bytes=23 * GIB, free_bytes=8 * GIB),
        q(config=TINY, device=LAPTOP, kv_cache_memory_bytes=GIB, free_bytes=8 * GIB),
    ),
}


def rules_of(question):
    answer = estimate(question())
    return {reason.rule for reason in (*answer.reasons, *answer.warnings)}


@pytest.mark.parametrize("rule", SIZED)
def test_a_rule_of_memory_speaks_of_its_command_and_not_of_the_neighbour(rule):
    breaks, neighbour = SIZED[rule]
    assert rule in rules_of(breaks)
    assert rule not in rules_of(neighbour)
