"""The one-field start: what people write, and what is understood."""

import pytest

from planner.readers.sentence import read_sentence


@pytest.mark.parametrize(
    ("text", "model", "gpu", "count"),
    [
        ("Llama 3 70B on 4 x A100 80GB", "Llama 3 70B", "A100 80GB", 4),
        ("meta-llama/Meta-Llama-3-70B on 4×a100-sxm4-80gb", "meta-llama/Meta-Llama-3-70B", "a100-sxm4-80gb", 4),
        ("Qwen/Qwen3-8B @ 2x H100", "Qwen/Qwen3-8B", "H100", 2),
        ("Qwen/Qwen3-8B on H100 x 2", "Qwen/Qwen3-8B", "H100", 2),
        ("Qwen/Qwen3-8B ON 8 H100", "Qwen/Qwen3-8B", "H100", 8),
        ("qwen3 8b on h100", "qwen3 8b", "h100", None),
        ("opt-125m on RTX 4090", "opt-125m", "RTX 4090", None),
        ("opt-125m on 4090", "opt-125m", "4090", None),
        ("opt-125m on RTX 4090x2", "opt-125m", "RTX 4090x2", None),
        ("  opt-125m   ", "opt-125m", "", None),
        ("", "", "", None),
    ],
)
def test_a_line_of_words_names_a_model_a_gpu_and_how_many(text, model, gpu, count):
    wish = read_sentence(text)
    assert (wish.model, wish.gpu, wish.gpu_count) == (model, gpu, count)
