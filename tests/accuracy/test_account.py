"""The acceptance of the measured terms on the catalog's own boots, each predicted by a fit that never saw it."""

import json
from pathlib import Path

import pytest
from django.core.management import call_command

from planner import catalog
from planner.accuracy.account import account
from planner.accuracy.document import accuracy_document
from planner.accuracy.knowledge import catalog_cases, held_out, make_fit
from planner.accuracy.text import as_text
from planner.catalog.fitted import PATH, write_fit

DOCUMENT = Path(__file__).parents[2] / "docs" / "accuracy.md"


@pytest.fixture(scope="module")
def found():
    return account()


@pytest.fixture(scope="module")
def unseen():
    return held_out(catalog_cases(catalog.fit()))


def test_the_median_error_is_at_most_half_the_baseline_s(found):
    ours, rival = found["available_kv"], found["baseline"]
    assert ours["n"] == rival["n"] >= 40
    assert ours["median_abs_share_of_gpu"] <= rival["median_abs_share_of_gpu"] / 2


def test_the_95th_percentile_is_below_the_baseline_s(found):
    assert found["available_kv"]["p95_abs_share_of_gpu"] < found["baseline"]["p95_abs_share_of_gpu"]


def test_intervals_hold_as_often_as_they_say(found):
    assert 0.85 <= found["available_kv"]["coverage"] <= 0.95


def test_intervals_are_not_wider_than_the_baseline_s(found):
    assert found["available_kv"]["median_width_share_of_gpu"] <= found["baseline"]["median_width_share_of_gpu"]


def test_errors_stay_small_where_every_gpu_and_release_counts_once(found):
    ours, rival = found["macro"]["available_kv"], found["macro"]["baseline"]
    assert found["macro"]["cells"] >= 10
    assert ours["median_abs_share_of_gpu"] <= rival["median_abs_share_of_gpu"] / 2


def test_the_errors_are_a_small_part_of_gpu_and_cache(found):
    assert found["available_kv"]["median_abs_share_of_gpu"] <= 0.01
    assert found["available_kv"]["p95_abs_share_of_gpu"] <= 0.05
    assert found["available_kv"]["median_abs_share_of_kv"] <= 0.02


def test_the_allocator_agrees_with_the_logs_of_every_kind_of_cache(found):
    allocator = found["allocator"]
    assert allocator["n"] >= 70
    assert all(allocator["by_kind"][kind]["n"] >= 3 for kind in ("full", "windows", "hybrid", "latent"))
    assert allocator["exact"] >= allocator["n"] - 1


def test_stops_are_foreseen_and_every_miss_is_explained(found):
    refusals = found["refusals"]
    assert refusals["told"]["recall"] >= 0.85
    assert refusals["false_alarm_rate"] <= 0.08
    for why in (*refusals["misses"].values(), *refusals["alarms"].values()):
        assert not why.startswith("not explained yet")


def test_boots_that_ran_short_under_load_are_flagged(found):
    assert found["under_load"]["flagged"] == found["under_load"]["n"] > 0


def test_the_account_is_also_split(found):
    assert set(found["by_term"]) == {"weights", "activation", "non_torch", "cuda_graphs", "available_kv"}
    assert found["by_version"]["0.19"]["available_kv"]["n"] >= 30
    assert found["by_gpu"]["h100-sxm5-80gb"]["baseline"]["n"] >= 30
    assert "LlamaForCausalLM" in found["by_architecture"]


def test_no_boot_is_predicted_by_a_fit_that_saw_it(unseen):
    behind = {boot.boot for boot in catalog.fit().evidence}
    for case in unseen:
        if case.boot.id in behind:
            assert case.boot.id not in {boot.boot for boot in case.question.fit.evidence}


def test_inside_the_campaign_the_whole_model_is_left_out(unseen):
    case = next(case for case in unseen if case.boot.id == "t025")
    models = {boot.id: boot.model for boot in catalog.boots()}
    left = {models[boot.boot] for boot in case.question.fit.evidence}
    assert "Qwen/Qwen2.5-7B-Instruct" in left
    assert "microsoft/phi-4" in left
    assert not [boot for boot in case.question.fit.evidence if boot.boot in ("t025", "t029", "t028", "t022")]


def test_the_fit_in_the_catalog_is_what_its_boots_give():
    assert write_fit(make_fit()) == PATH.read_bytes()


def test_the_command_prints_a_table_and_json(capsys, tmp_path):
    boot = {
        "id": "elsewhere",
        "source": "a log",
        "vllm_version": "0.19.0",
        "model": "Qwen2.5-7B-Instruct",
        "gpu": "H100 80GB",
        "gpu_count": 1,
        "tp": 1,
        "gpu_memory_utilization": 0.95,
        "max_model_len": 8192,
        "observed": {"available_kv_gib": 58.53, "num_gpu_blocks": 68500, "total_gpu_gib": 79.19},
        "outcome": "ok",
    }
    path = tmp_path / "boots.jsonl"
    path.write_text(json.dumps(boot) + "\n")
    call_command("accuracy", str(path), "--json")
    printed = json.loads(capsys.readouterr().out)
    assert printed["available_kv"]["n"] == printed["allocator"]["exact"] == 1
    assert printed["available_kv"]["median_abs_gib"] < 0.02
    call_command("accuracy", str(path))
    assert "Allocator: from the logged memory" in capsys.readouterr().out


def test_a_file_that_holds_no_boots_ends_with_status_2(tmp_path, capsys):
    path = tmp_path / "boots.jsonl"
    path.write_text("nonsense")
    with pytest.raises(SystemExit) as ended:
        call_command("accuracy", str(path))
    assert ended.value.code == 2
    assert "boots.jsonl, line 1" in capsys.readouterr().err


def test_the_text_names_wilson_bounds_and_the_baseline(found):
    text = as_text(found, "Account")
    assert "baseline: available KV" in text
    assert "Wilson" in text


def test_the_document_says_what_was_not_run(found):
    document = accuracy_document(found)
    assert "We have not run vLLM on a GPU ourselves" in document
    assert "{tables}" not in document


def test_the_document_in_the_repository_is_what_the_boots_give(found):
    assert DOCUMENT.read_text(encoding="utf-8") == accuracy_document(found)
