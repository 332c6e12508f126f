"""States of recurrent layers on one rank: shapes and bytes worked out from the models' configs."""

import pytest

from planner import catalog
from planner.core.cache_layer import StateCache
from planner.core.cache_request import CacheRequest
from planner.core.errors import BadInput
from planner.core.recurrent_state import rank_state

# Qwen3-Next: 16 key heads and 32 value heads of 128, a convolution over 4 tokens.
DELTA_NET = StateCache(kind="gdn", conv_kernel=4, num_heads=32, head_dim=128, key_heads=16, key_head_dim=128)
# Nemotron 3 Nano: 64 heads of 64 over a state of 128, 8 groups.
MAMBA_2 = StateCache(
    kind="mamba2", inner_size=4096, state_size=128, conv_kernel=4, num_heads=64, head_dim=64, num_groups=8
)


def state(cache, version="0.32.0", *, tp=1, drafted=0, nemotron=False, **asked):
    """Return the state on one rank of a bf16 model."""
    return rank_state(
        cache,
        tensor_parallel_size=tp,
        drafted_tokens=drafted,
        dtype="bfloat16",
        asked=CacheRequest(**asked),
        facts=catalog.engine_facts(version),
        nemotron=nemotron,
    )


def test_a_delta_net_keeps_a_window_of_inputs_and_a_matrix_a_head():
    whole = state(DELTA_NET)
    assert whole.shapes == ((3, 8192), (32, 128, 128))
    assert whole.content_bytes == 3 * 8192 * 2 + 32 * 128 * 128 * 2 == 1_097_728


def test_ranks_share_a_state_and_drafts_lengthen_its_window():
    share = state(DELTA_NET, tp=4, drafted=3, mamba_ssm_cache_dtype="float32")
    assert share.shapes == ((6, 2048), (8, 128, 128))
    assert share.dtypes == ("bfloat16", "float32")


def test_groups_are_copied_where_ranks_do_not_divide_them():
    assert state(MAMBA_2, tp=4).shapes == ((3, 1536), (16, 64, 128))
    # 16 ranks: each gets a whole copy of one group; (4,096 + 2 x 16 x 128) / 16 inputs.
    assert state(MAMBA_2, tp=16).shapes == ((3, 512), (4, 64, 128))


def test_what_ranks_cannot_share_is_refused():
    with pytest.raises(BadInput) as fault:
        state(DELTA_NET, tp=3)
    assert fault.value.field == "tensor_parallel_size"


@pytest.mark.parametrize(
    ("version", "asked", "dtypes"),
    [
        ("0.32.0", {}, ("bfloat16", "float32")),  # vLLM's own default for Nemotron
        ("0.32.0", {"mamba_ssm_cache_dtype": "float16"}, ("bfloat16", "float16")),
        ("0.32.0", {"mamba_cache_dtype": "float32"}, ("float32", "float32")),
    ],
)
def test_flags_come_before_what_the_release_gives_nemotron(version, asked, dtypes):
    assert state(MAMBA_2, version, nemotron=True, **asked).dtypes == dtypes


def test_a_convolution_alone_is_one_tensor():
    assert state(StateCache(kind="short_conv", conv_kernel=3, inner_size=2048), tp=2).shapes == ((2, 1024),)
