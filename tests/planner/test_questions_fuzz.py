"""Whatever is asked, the planner answers or names the field at fault; and in every answer the bytes add up."""

import json
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from planner import catalog
from planner.answer_text import answer_text
from planner.core.document import document
from planner.core.errors import BadInput, Unknown
from planner.core.estimate import estimate
from planner.questions import question_from_inputs

MODELS = ["meta-llama/Meta-Llama-3-70B-Instruct", "Qwen/Qwen3-8B", "facebook/opt-125m", "deepseek-ai/DeepSeek-V3"]
WHOLE = st.sampled_from([0, 1, 2, 3, 4, 8, 16, 64, 256, 2048, 8192, 131_072, 10**9, 2**63 - 1, -1])
FRACTION = st.sampled_from([0, 1e-12, 0.1, 0.5, 0.85, 0.9, 0.98, 1, 1.5, -1])
ARGS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"), WHOLE),
        **dict.fromkeys(("max_num_seqs", "max_num_batched_tokens", "block_size", "num_gpu_blocks_override"), WHOLE),
        **dict.fromkeys(("kv_cache_memory_bytes", "long_prefill_token_threshold", "max_cudagraph_capture_size"), WHOLE),
        "max_model_len": WHOLE | st.just("auto"),
        "gpu_memory_utilization": FRACTION,
        "kv_cache_dtype": st.sampled_from(["auto", "fp8", "bfloat16", "nvfp4"]),
        "dtype": st.sampled_from(["auto", "half", "float32", "bfloat16"]),
        **dict.fromkeys(("enforce_eager", "enable_chunked_prefill", "async_scheduling"), st.booleans()),
        "compilation_config": st.sampled_from(
            ['{"cudagraph_mode": 3}', '{"cudagraph_capture_sizes": ["a"]}', '{"mode": []}']
        ),
        "hf_overrides": st.sampled_from(
            [
                {"num_hidden_layers": 0},
                {"hidden_size": "x"},
                {"num_key_value_heads": 3},
                {"architectures": []},
                {"vocab_size": -1},
            ]
        ),
        "usage": st.sampled_from(["server", "offline"]),
    },
)
REQUESTS = st.lists(
    st.fixed_dictionaries(
        {"prompt_tokens": st.integers(1, 10**6), "output_tokens": st.integers(0, 10**5)},
        optional={"share": FRACTION, "concurrent": st.integers(1, 1000), "shared_prefix_tokens": st.integers(0, 4096)},
    ),
    max_size=2,
)
INPUTS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "gpu": st.sampled_from([*(gpu.slug for gpu in catalog.gpus()), "cpu"]),
        "vllm_version": st.sampled_from(catalog.known_versions()),
        "args": ARGS,
    },
    optional={
        "gpu_count": st.integers(1, 16),
        "gpu_memory_gib": st.sampled_from([1e-9, 1, 24, 79.25, 1e6]),
        "free_gib": st.sampled_from([1e-9, 1, 79, 1e6]),
        "requests": REQUESTS,
        "environment": st.fixed_dictionaries(
            {}, optional={"VLLM_PP_LAYER_PARTITION": st.sampled_from(["40,40", "x", "-1"])}
        ),
    },
)


@settings(max_examples=250, deadline=None)
@given(INPUTS)
def test_every_question_has_an_answer_or_a_named_fault(inputs):
    with suppress(BadInput, Unknown):
        question = question_from_inputs(inputs)
        found = document(question, estimate(question))
        json.dumps(found, allow_nan=False)
        assert answer_text(found, why=True).startswith(found["summary"])
        for rank in found["ranks"]:
            inside = [term["bytes"] for term in rank["terms"] if term["inside_budget"]]
            assert sum(inside) == rank["requested_bytes"]
            assert all(term["low_bytes"] <= term["bytes"] <= term["high_bytes"] for term in rank["terms"])
