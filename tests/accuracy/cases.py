"""Boots made up for tests of the account, on the catalog's real models, devices and versions."""

from planner import catalog
from planner.accuracy.knowledge import cases_of
from planner.accuracy.scores import score
from planner.catalog.boots import Boot


def a_boot(**facts):
    """Return a boot of Llama-3.1-8B on one H100, vLLM 0.19.0, with the figures of t025 unless told otherwise."""
    given = {
        "id": "made-up",
        "source": "made up",
        "outcome": "booted",
        "vllm": "0.19.0",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "H100 80GB",
        "gpus": 1,
        "tp": 1,
        "utilization": 0.95,
        "max_model_len": 8192,
        "total_gib": (79.19,),
        "available_kv_gib": (58.11,),
        "kv_tokens": 476016,
        "num_gpu_blocks": 29751,
        "max_concurrency": 58.11,
    }
    return Boot(**{**given, **facts})


def case_of(**facts):
    return cases_of([a_boot(**facts)], catalog.fit())[0]


def score_of(**facts):
    return score(case_of(**facts))
