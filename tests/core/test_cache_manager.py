"""When layers of unlike caches each keep what they need, and when all keep what full attention does."""

import json

import pytest

from planner import catalog
from planner.core.cache_manager import uses_hybrid_manager
from planner.core.engine import EngineArgs
from planner.core.model import model_from_config
from tests.core.questions import H100, LAPTOP

GPT_OSS = "openai/gpt-oss-20b"
LLAMA_4 = "meta-llama/Llama-4-Scout-17B-16E-Instruct"


def managed(name, version="0.32.0", device=H100, **flags):
    """Say whether the hybrid manager is on."""
    model = model_from_config(catalog.find_config(name), name=name)
    return uses_hybrid_manager(EngineArgs(**flags), model=model, gpu=device, facts=catalog.engine_facts(version))


def transferred(connector):
    return {"other": (("kv_transfer_config", json.dumps({"kv_connector": connector, "kv_role": "kv_both"})),)}


def test_windows_keep_only_their_window_unless_the_flag_says_otherwise():
    assert managed(GPT_OSS)
    assert not managed(GPT_OSS, disable_hybrid_kv_cache_manager=True)


def test_the_cpu_has_it_since_0_10_2():
    assert not managed(GPT_OSS, "0.10.1", LAPTOP)
    assert managed(GPT_OSS, "0.10.2", LAPTOP)


def test_chunks_of_llama_4_turn_it_off_unless_the_variable_allows_them():
    assert not managed(LLAMA_4)
    assert managed(LLAMA_4, environment={"VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE": "1"})


@pytest.mark.parametrize(
    ("version", "connector", "flags", "on"),
    [
        ("0.12.0", "NixlConnector", {}, False),
        ("0.21.0", "NixlConnector", {}, False),
        ("0.21.0", "NixlConnector", {"disable_hybrid_kv_cache_manager": False}, True),
        ("0.32.0", "NixlConnector", {}, True),
        ("0.32.0", "SomeConnector", {}, False),
    ],
)
def test_a_connector_turns_it_off_unless_it_knows_it(version, connector, flags, on):
    assert managed(GPT_OSS, version, **transferred(connector), **flags) is on
