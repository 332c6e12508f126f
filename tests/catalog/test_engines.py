"""What each vLLM release does, at the releases where it changed; expectations are from vLLM's own release history."""

import re
from dataclasses import fields
from itertools import pairwise

import pytest

from planner import catalog
from planner.catalog.flags import DATA as FLAGS
from planner.catalog.tables import read_table
from planner.core.engine import EngineFacts, Version
from planner.core.errors import BadInput, Unknown

DERIVED = {"version", "assumed_newest"}


def facts(version):
    return catalog.engine_facts(version)


def test_the_known_releases_are_in_order_and_those_of_the_flags():
    versions = [Version.parse(text) for text in catalog.known_versions()]
    assert versions == sorted(set(versions))
    assert list(catalog.known_versions()) == read_table(FLAGS.name)["releases"]
    assert (catalog.known_versions()[0], catalog.known_versions()[-1]) == ("0.8.5", "0.33.0")


@pytest.mark.parametrize("fact", catalog.engine_fact_table(), ids=lambda fact: f"{fact.name} {fact.since}")
def test_a_line_has_a_source_in_its_release_and_a_confidence(fact):
    assert re.fullmatch(rf"https://github\.com/vllm-project/vllm/blob/v{fact.since}/vllm/\S+\.py", fact.source)
    assert fact.confidence in ("high", "medium", "low")
    assert str(fact.since) in catalog.known_versions()


def test_no_fact_has_two_lines_for_one_release():
    lines = [(fact.name, fact.since) for fact in catalog.engine_fact_table()]
    assert len(lines) == len(set(lines))


def test_every_fact_of_the_core_is_known_from_the_oldest_release_on():
    oldest = Version.parse(catalog.known_versions()[0])
    known = {fact.name for fact in catalog.engine_fact_table() if fact.since == oldest}
    assert known == {field.name for field in fields(EngineFacts)} - DERIVED


@pytest.mark.parametrize("version", catalog.known_versions())
def test_every_known_release_has_its_facts(version):
    assert str(facts(version).version) == version
    assert not facts(version).assumed_newest


def test_a_line_that_repeats_the_one_before_it_is_none():
    for name in {fact.name for fact in catalog.engine_fact_table()}:
        lines = sorted((f for f in catalog.engine_fact_table() if f.name == name), key=lambda fact: fact.since)
        assert all(a.value != b.value for a, b in pairwise(lines))


@pytest.mark.parametrize(
    ("version", "name", "value"),
    [
        ("0.9.1", "checks_free_memory", False),
        ("0.9.2", "checks_free_memory", True),
        ("0.10.1", "kv_cache_memory_bytes", False),
        ("0.10.2", "kv_cache_memory_bytes", True),
        ("0.13.0", "auto_max_model_len", False),
        ("0.14.1", "auto_max_model_len", True),
        ("0.13.0", "async_scheduling_default", False),
        ("0.14.1", "async_scheduling_default", True),
        ("0.15.1", "rounds_requested_up", False),
        ("0.16.0", "rounds_requested_up", True),
        ("0.17.1", "cuda_graphs", "outside"),
        ("0.18.1", "cuda_graphs", "measured_outside"),
        ("0.19.1", "cuda_graphs", "measured_outside"),
        ("0.20.0", "cuda_graphs", "inside"),
        ("0.19.1", "default_gpu_memory_utilization", 0.9),
        ("0.20.0", "default_gpu_memory_utilization", 0.92),
        ("0.19.1", "kv_size_is_relative_to_length", False),
        ("0.20.2", "kv_size_is_relative_to_length", True),
        ("0.8.5", "concurrency_is_tokens_over_length", True),
        ("0.9.2", "concurrency_is_tokens_over_length", False),
        ("0.21.0", "model_runner_v2", "none"),
        ("0.22.1", "model_runner_v2", "listed_plain"),
        ("0.23.0", "model_runner_v2", "listed_plain"),
        ("0.24.0", "model_runner_v2", "listed"),
        ("0.28.0", "model_runner_v2", "listed_or_dense"),
        ("0.29.0", "model_runner_v2", "nearly_all"),
        ("0.26.0", "measures_by_mem_get_info", False),
        ("0.27.1", "measures_by_mem_get_info", True),
        ("0.28.0", "withholds_null_block", False),
        ("0.29.0", "withholds_null_block", True),
        ("0.22.1", "model_runner_v2_architectures", ("Qwen3ForCausalLM",)),
        ("0.11.0", "chunked_prefill_is_forced", True),
        ("0.11.1", "chunked_prefill_is_forced", False),
        ("0.14.1", "hybrid_prefix_caching", "some"),
        ("0.27.1", "hybrid_prefix_caching", "asked"),
        ("0.28.0", "hybrid_prefix_caching", "default"),
        ("0.14.1", "async_over_stages", "never"),
        ("0.15.0", "async_over_stages", "always"),
        ("0.31.0", "async_over_stages", "v2"),
        ("0.19.1", "cpu_default_kv_gib", 4),
        ("0.20.0", "cpu_default_kv_gib", None),
    ],
)
def test_a_release_does_what_it_did(version, name, value):
    assert getattr(facts(version), name) == value


def default_batch(version, total_gib, name):
    row = next(row for row in facts(version).batched_token_defaults if row.holds_for(total_gib, name))
    return row.server_tokens, row.offline_tokens, row.max_num_seqs


@pytest.mark.parametrize(
    ("version", "total_gib", "name", "expected"),
    [
        ("0.32.0", 178.36, "b200 sxm", (16384, 16384, 1024)),
        ("0.27.1", 178.36, "b200 sxm", (8192, 16384, 1024)),
        ("0.32.0", 79.19, "h100 sxm5 80gb", (8192, 16384, 1024)),
        ("0.32.0", 79.15, "a100 sxm4 80gb", (2048, 8192, 256)),
        ("0.32.0", 44.4, "l40s", (2048, 8192, 256)),
        ("0.32.0", 121.69, "gb10 (dgx spark)", (8192, 16384, 1024)),
        ("0.33.0", 121.69, "gb10 (dgx spark)", (2048, 8192, 256)),
    ],
)
def test_the_scheduler_defaults_follow_memory_name_and_release(version, total_gib, name, expected):
    assert default_batch(version, total_gib, name) == expected


def test_without_a_version_the_newest_known_is_meant():
    assert str(facts(None).version) == "0.33.0"
    assert not facts(None).assumed_newest


@pytest.mark.parametrize(
    ("written", "release"),
    [
        ("v0.19", "0.19.0"),
        ("0.11.2.post2", "0.11.2"),
        ("0.27.1rc1.dev608", "0.27.1"),
        ("0.26.1rc1.dev608", "0.26.1"),
        ("0.32.0+cpu", "0.32.0"),
    ],
)
def test_a_suffix_leaves_the_release(written, release):
    assert str(facts(written).version) == release


def test_a_patch_that_was_never_read_has_the_facts_of_the_release_before_it():
    assert facts("0.26.1rc1.dev608").batched_token_defaults == facts("0.26.0").batched_token_defaults
    assert not facts("0.26.1").measures_by_mem_get_info


def test_a_newer_version_takes_the_newest_facts_and_says_so():
    newer, newest = facts("0.40.0"), facts(None)
    assert newer.assumed_newest
    assert str(newer.version) == "0.40.0"
    assert newer.batched_token_defaults == newest.batched_token_defaults


def test_an_older_version_is_unknown():
    with pytest.raises(Unknown, match=r"vLLM 0\.6\.6 is older than 0\.8\.5") as fault:
        facts("0.6.6.post1")
    assert fault.value.field == "vllm_version"


@pytest.mark.parametrize("text", ["main", "", "0", "latest", "zero.nine"])
def test_what_is_no_version_is_bad_input(text):
    with pytest.raises(BadInput) as fault:
        facts(text)
    assert fault.value.field == "vllm_version"
