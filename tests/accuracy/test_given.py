"""Boots handed over as JSON lines."""

import json

import pytest

from planner.accuracy.asked import environment_of
from planner.accuracy.given import boot_from_row, read_boots
from planner.core.errors import BadInput

ROW = {
    "id": "x1",
    "source": "https://example.org/log",
    "vllm_version": "0.19.0",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "gpu": "H100 80GB",
    "gpu_count": 2,
    "tp": 2,
    "gpu_memory_utilization": 0.95,
    "max_model_len": 8192,
    "observed": {
        "available_kv_gib": [63.76, 63.76],
        "kv_cache_tokens": 1044688,
        "activation_peak_gib": 1.89,
        "weights_gib": 7.51,
        "model_loading_gib": 7.51,
        "graph_capture_gib": 0.76,
        "total_gpu_gib": 79.19,
    },
    "outcome": "ok",
    "terms_detail": {"init": {"free_memory": 77.66}, "graph_estimate_gib": 1.69},
}


def test_what_the_log_printed_is_read_a_figure_a_rank():
    boot = boot_from_row(ROW)
    assert boot.available_kv_gib == (63.76, 63.76)
    assert (boot.graphs_gib, boot.graphs_estimated_gib) == ((0.76,), (1.69,))
    assert (boot.tp, boot.gpus, boot.kv_tokens) == (2, 2, 1044688)
    assert boot.free_at_start_gib == (77.66,)
    assert boot.assumed == frozenset()


def test_what_is_inferred_fills_gaps_and_is_marked():
    boot = boot_from_row({**ROW, "gpu": None, "inferred": {"gpu": "A100 40GB (39.49 GiB)", "max_num_seqs": 256}})
    assert boot.gpu == "A100 40GB"
    assert boot.assumed == frozenset({"gpu", "max_num_seqs"})


def test_from_0_27_1_on_weights_and_activation_carry_more():
    boot = boot_from_row({**ROW, "vllm_version": "0.31.0"})
    assert boot.consumed_gib == (7.51,)
    assert (boot.activation_gib, boot.activation_with_graphs_gib) == ((), (1.89,))


def test_a_refusal_states_what_could_be_stored_and_what_was_free():
    gist = "ValueError: Free memory on device cuda:1 (60.87/79.19 GiB) on startup is less than desired"
    boot = boot_from_row({**ROW, "outcome": "refused", "error_gist": gist})
    assert (boot.outcome, boot.failure) == ("refused", "free_memory")
    assert boot.free_at_start_gib == (60.87,)
    assert (boot.kv_tokens, boot.storable_tokens) == (None, 1044688)


def test_an_outcome_nobody_foresaw_is_unclear():
    assert boot_from_row({**ROW, "outcome": "meltdown"}).outcome == "unclear"


def test_adapters_and_drafts_are_noticed():
    assert boot_from_row({**ROW, "other_args": "enable-lora, max-loras 10"}).lora
    assert boot_from_row({**ROW, "speculative_config": "mtp"}).draft_model


def test_tier_and_words_beside_the_command_are_kept():
    boot = boot_from_row({**ROW, "use_tier": "A", "other_args": "language-model-only"})
    assert (boot.tier, boot.flags, boot.command_told) == ("A", "language-model-only", False)


def test_a_printed_list_of_arguments_tells_the_whole_command():
    boot = boot_from_row({**ROW, "other_args": "non-default args: {'model': 'x'}"})
    assert (boot.flags, boot.command_told) == ("", True)


def test_variables_in_front_of_a_command_count():
    boot = boot_from_row({**ROW, "command": "VLLM_USE_V2_MODEL_RUNNER=0 vllm serve x"})
    assert environment_of(boot) == (("VLLM_USE_V2_MODEL_RUNNER", "0"),)


def test_a_file_is_read_line_by_line(tmp_path):
    path = tmp_path / "boots.jsonl"
    path.write_text(json.dumps(ROW) + "\n\n" + json.dumps({**ROW, "id": "x2"}) + "\n")
    assert [boot.id for boot in read_boots(path)] == ["x1", "x2"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "line 1 is not JSON"),
        ('{"outcome": "ok", "observed": 5}', "line 1 is not a boot"),
        ('{"observed": {}}', "line 1 is not a boot"),
        ("[1]", "line 1 is not a boot"),
    ],
)
def test_a_line_that_is_no_boot_is_named(tmp_path, content, says):
    path = tmp_path / "boots.jsonl"
    path.write_text(content)
    with pytest.raises(BadInput, match=says):
        read_boots(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_boots(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("written", "field", "read"),
    [
        ({"tp": "2"}, "tp", 2),
        ({"tp": 2.0}, "tp", 2),
        ({"tp": [2, 2]}, "tp", 2),
        ({"tp": [1, 2]}, "tp", None),
        ({"gpu": ["H100 80GB", "H100 80GB"]}, "gpu", "H100 80GB"),
        ({"gpu_memory_utilization": "0.9"}, "utilization", 0.9),
        ({"enforce_eager": "True"}, "enforce_eager", True),
        ({"max_num_seqs": "many"}, "max_num_seqs", None),
        ({"vllm_version": "0.19.0"}, "vllm", "0.19.0"),
    ],
)
def test_values_are_read_as_people_write_them(written, field, read):
    assert getattr(boot_from_row({**ROW, **written}), field) == read


def test_a_row_that_observed_nothing_is_a_boot_all_the_same():
    assert boot_from_row({**ROW, "observed": None}).available_kv_gib == ()
