"""Facts of vLLM versions for tests of the core, written out by hand from the timeline of vLLM's own releases."""

from dataclasses import replace

from planner.core.engine import BatchDefaults, EngineFacts, Version

FACTS_032 = EngineFacts(
    version=Version(0, 32, 0),
    default_gpu_memory_utilization=0.92,
    checks_free_memory=True,
    rounds_requested_up=True,
    cuda_graphs="inside",
    measures_by_mem_get_info=True,
    withholds_null_block=True,
    kv_size_is_relative_to_length=True,
    concurrency_is_tokens_over_length=False,
    states_estimated_max_model_len=True,
    auto_max_model_len=True,
    kv_cache_memory_bytes=True,
    async_scheduling_default=True,
    model_runner_v2="nearly_all",
    batched_token_defaults=(
        BatchDefaults(min_total_gib=160, offline_tokens=16384, server_tokens=16384, max_num_seqs=1024),
        BatchDefaults(
            min_total_gib=70, excludes=("a100",), offline_tokens=16384, server_tokens=8192, max_num_seqs=1024
        ),
        BatchDefaults(min_total_gib=0, offline_tokens=8192, server_tokens=2048, max_num_seqs=256),
    ),
)
FACTS_019 = replace(
    FACTS_032,
    version=Version(0, 19, 0),
    default_gpu_memory_utilization=0.9,
    cuda_graphs="measured_outside",
    measures_by_mem_get_info=False,
    withholds_null_block=False,
    kv_size_is_relative_to_length=False,
    model_runner_v2="none",
    batched_token_defaults=FACTS_032.batched_token_defaults[1:],
)
FACTS_085 = replace(
    FACTS_019,
    version=Version(0, 8, 5),
    checks_free_memory=False,
    rounds_requested_up=False,
    cuda_graphs="outside",
    concurrency_is_tokens_over_length=True,
    auto_max_model_len=False,
    kv_cache_memory_bytes=False,
    async_scheduling_default=False,
)
