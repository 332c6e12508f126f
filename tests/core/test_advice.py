"""One-flag changes: each is re-planned, ranked by requests at once, and none that would be refused is offered."""

from dataclasses import replace

from planner.core.advice import what_would_help
from planner.core.capacity import RequestClass
from planner.core.estimate import estimate
from planner.core.units import GIB
from tests.core.questions import A100, H100, LLAMA_3_8B, LLAMA_3_70B, T4, TINY, ask

BURST = (RequestClass(name="burst", prompt_tokens=8000, output_tokens=192, concurrent=85),)


def changes(**question):
    asked = ask(**question)
    return what_would_help(asked, estimate(asked))


def by_flag(**question):
    return {change.flag: change for change in changes(**question)}


def test_an_fp8_cache_holds_about_twice_the_requests():
    change = by_flag(config=LLAMA_3_70B, device=A100, tensor_parallel_size=4)["kv_cache_dtype"]
    assert change.label == "--kv-cache-dtype fp8"
    assert 1.9 < change.gain < 2.1


def test_the_best_comes_first():
    gains = [change.requests_at_once for change in changes(config=LLAMA_3_70B, device=A100, tensor_parallel_size=4)]
    assert gains == sorted(gains, reverse=True)


def test_each_change_holds_what_it_says():
    asked = ask(LLAMA_3_70B, A100, tensor_parallel_size=4, requests=BURST)
    for change in what_would_help(asked, estimate(asked)):
        again = estimate(replace(asked, args=change.args))
        assert again.capacity.mix.requests_at_once == change.requests_at_once


def test_what_the_device_refuses_is_not_offered():
    assert "kv_cache_dtype" not in by_flag(config=TINY, device=T4)


def test_no_more_gpus_than_there_are():
    labels = {change.label for change in changes(config=LLAMA_3_70B, device=A100, tensor_parallel_size=4, gpu_count=4)}
    assert "--tensor-parallel-size 8" not in labels


def test_a_plan_that_does_not_fit_is_offered_one_that_does():
    config = {**LLAMA_3_8B, "max_position_embeddings": 131072}
    offered = by_flag(config=config, device=H100.with_total(24 * GIB))
    assert offered["max_model_len"].requests_now == 0
    assert offered["max_model_len"].requests_at_once >= 1


def test_when_others_hold_memory_the_share_that_is_free_is_offered():
    """60 of 79.19 GiB are free: 0.75 of the total is 59.39."""
    offered = by_flag(device=H100, free_bytes=60 * GIB)["gpu_memory_utilization"]
    assert (offered.value, offered.requests_now) == ("0.75", 0)
