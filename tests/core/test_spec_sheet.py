"""A model's sheet and where it fits: expected figures are published ones or sums shown here."""

from dataclasses import replace

import pytest

from planner.core.fits_on import fits_on
from planner.core.model import model_from_config
from planner.core.spec_sheet import spec_sheet
from planner.core.words import share_in_words
from tests.core.questions import A100, H100, LLAMA_3_70B, TINY, ask


def sheet(config, **changes):
    return spec_sheet(model_from_config({**config, **changes}, name="tested"))


def test_llama_3_70b_caches_320_kib_a_token_and_half_of_it_in_fp8():
    # 80 layers x 2 x 8 KV heads x 128 x 2 B = 327,680 B; 8,192 tokens of it are 2,684,354,560 B.
    found = sheet(LLAMA_3_70B)
    assert found.kv_bytes_per_token == 327_680
    assert found.kv_bytes_per_token_fp8 == 163_840
    assert found.bytes_per_full_request == 2_684_354_560


@pytest.mark.parametrize(
    ("kv_heads", "kind"), [(8, "multi-head (MHA)"), (2, "grouped-query (GQA)"), (1, "multi-query (MQA)")]
)
def test_the_attention_kind_follows_from_the_heads(kv_heads, kind):
    assert sheet(TINY, num_key_value_heads=kv_heads).attention_kind == kind


def test_weights_are_two_bytes_a_parameter_in_bfloat16_and_four_in_float32():
    # 70,553,706,496 parameters, none of them padding: 128,256 is a multiple of 64.
    assert dict(sheet(LLAMA_3_70B).weight_bytes) == {"bfloat16": 141_107_412_992, "float32": 282_214_825_984}


def test_the_70b_needs_two_80_gb_cards_at_least():
    # Weights alone are 131.4 GiB: more than one card's 79.15, less than two.
    (row,) = fits_on(ask(LLAMA_3_70B), [A100])
    assert [(cell.gpu_count, cell.verdict) for cell in row] == [
        (1, "does_not_fit"),
        (2, "fits"),
        (4, "fits"),
        (8, "fits"),
    ]
    assert row[0].requests == 0
    assert 0 < row[1].requests < row[2].requests < row[3].requests


def test_a_count_that_heads_do_not_divide_by_is_refused_with_the_reason():
    (row,) = fits_on(ask(TINY), [H100], counts=(1, 3))
    assert row[1].verdict == "refused"
    assert "3" in row[1].reason


def test_what_cannot_be_planned_is_a_cell_that_says_so():
    (row,) = fits_on(ask(TINY), [replace(H100, device_type="rocm")], counts=(1,))
    assert (row[0].verdict, row[0].requests) == ("unknown", 0)
    assert row[0].reason


def test_shares_read_as_percent():
    assert share_in_words(0.756) == "75.6%"


def test_layers_of_several_kinds_are_counted():
    # Gemma 3 1B: of 26 layers every sixth keeps all tokens, 4 of them; the others a window of 512.
    config = {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "hidden_size": 1152,
        "intermediate_size": 6912,
        "num_hidden_layers": 26,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
        "vocab_size": 262144,
        "max_position_embeddings": 32768,
        "torch_dtype": "bfloat16",
    }
    found = sheet(config)
    assert found.attention_kind == "22 x window of 512 tokens, multi-query (MQA), 4 x multi-query (MQA)"
    # A token costs 4 layers x 2 x 256 x 2 B; a full request also 22 windows of 512 tokens.
    assert found.kv_bytes_per_token == 4 * 1024
    assert found.bytes_per_full_request == 32768 * 4 * 1024 + 512 * 22 * 1024
