"""Gemma 4's windows beside its full attention: the tokens that two published boots on one H200 logged."""

import pytest

from planner import catalog
from planner.core.cache_plan import cache_design
from planner.core.defaults import resolve
from planner.core.engine import EngineArgs
from planner.core.layout import Layout
from planner.core.model import model_from_config
from planner.core.units import GIB
from tests.core.questions import gpu

GEMMA = model_from_config(catalog.find_config("google/gemma-4-31B-it"), name="google/gemma-4-31B-it")
H200 = gpu("H200", 139.7, 139.8, 140.4, (9, 0))
HALF_OF_THE_LAST_DIGIT = 0.005 * GIB


def tokens(release, available_bytes):
    """Return the tokens vLLM logs for these bytes, in the boots' command: 262,144 tokens, 8,192 a step."""
    facts = catalog.engine_facts(release)
    asked = EngineArgs(max_model_len=262_144, max_num_batched_tokens=8_192)
    resolved = resolve(asked, model=GEMMA, gpu=H200, facts=facts)
    layout = Layout(
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        data_parallel_size=1,
        layers_per_stage=resolved.layers_per_stage,
    )
    design = cache_design(GEMMA, args=asked, resolved=resolved, gpu=H200, facts=facts, layout=layout)
    return design.plan([int(available_bytes)]).tokens


@pytest.mark.parametrize("release", ["0.20.1", "0.22.1", "0.25.1"])
@pytest.mark.parametrize(("gib", "logged"), [(64.68, 626_949), (103.92, 1_007_303)])
def test_the_log_of_gemma_4_is_met_within_the_rounding_of_its_gib(release, gib, logged):
    low = tokens(release, gib * GIB - HALF_OF_THE_LAST_DIGIT)
    assert low <= logged <= tokens(release, gib * GIB + HALF_OF_THE_LAST_DIGIT)


def test_64_68_gib_hold_626_949_tokens_to_the_token():
    assert tokens("0.22.1", 64.68 * GIB) == 626_949


def test_until_0_20_0_a_token_was_logged_as_if_windows_grew():
    """50 windows of 16,384 bytes a token and 10 full layers of 8,192, in pages of one size: six pages for a token."""
    page_of_ten_layers = 10 * 16 * 16_384
    assert tokens("0.20.0", 64.68 * GIB) == int(64.68 * GIB) // page_of_ten_layers // 6 * 16
