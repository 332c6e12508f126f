"""Tokens in a block by release: what the platform names, what kernels take, and what a state raises them to."""

import pytest

from planner import catalog
from planner.core.defaults import resolve
from planner.core.engine import EngineArgs
from planner.core.errors import BadInput, Unknown
from planner.core.kv_layers import cache_setting
from planner.core.model import model_from_config
from planner.core.page_alignment import block_plan
from tests.core.questions import A100, H100, gpu

B200 = gpu("B200", 178, 178, 178, (10, 0))
B300 = gpu("B300", 268, 268, 268, (10, 3))


def plan(name, device, version="0.32.0", **flags):
    """Return the block plan of a model of the catalog."""
    model = model_from_config(catalog.find_config(name), name=name)
    facts = catalog.engine_facts(version)
    resolved = resolve(EngineArgs(model=name, **flags), model=model, gpu=device, facts=facts)
    return block_plan(cache_setting(model, resolved, device, facts))


@pytest.mark.parametrize(
    ("version", "device", "block"),
    [
        ("0.8.5", H100, 64),  # "Forcing kv cache block size to 64 for FlashMLA backend."
        ("0.10.2", H100, 64),
        ("0.17.1", H100, 64),
        ("0.18.1", H100, 16),  # FLASH_ATTN_MLA takes any multiple of 16
        ("0.8.5", A100, 16),  # FlashMLA is for Hopper; TRITON_MLA remains
        ("0.9.2", B200, 16),
        ("0.10.2", B200, 128),  # "Forcing kv cache block size to 128 for CUTLASS_MLA backend."
        ("0.10.2", B300, 16),  # exactly capability 10.0 until 0.11.0
        ("0.14.1", B300, 128),
        ("0.15.1", B200, 64),  # "Forcing kv cache block size to 64 for FlashInferMLA backend."
        ("0.18.1", B200, 32),  # FLASHINFER_MLA prefers the least of 32 and 64
        ("0.32.0", B200, 32),
    ],
)
def test_the_block_of_a_latent_follows_the_kernel_of_the_release(version, device, block):
    assert plan("deepseek-ai/DeepSeek-V2-Lite", device, version).attention == block


def test_a_block_that_the_platform_does_not_expect_is_overruled_until_0_17():
    v2 = "deepseek-ai/DeepSeek-V2-Lite"
    assert plan(v2, H100, "0.10.2", block_size=128).attention == 64
    assert plan(v2, H100, "0.11.2", block_size=128).attention == 128
    assert plan(v2, H100, "0.17.1", block_size=32).attention == 64
    assert plan(v2, H100, "0.18.1", block_size=32).attention == 32


def test_fp8_on_hopper_moves_a_latent_to_blocks_of_64():
    assert plan("deepseek-ai/DeepSeek-V2-Lite", H100, kv_cache_dtype="fp8").attention == 64


def test_a_dense_model_has_blocks_of_16_unless_asked_otherwise():
    qwen = "Qwen/Qwen3-8B"
    assert {plan(qwen, device).attention for device in (A100, H100, B200)} == {16}
    assert plan(qwen, H100, block_size=48).attention == 48


def test_a_block_that_no_kernel_takes_is_refused_by_name():
    with pytest.raises(BadInput, match="no attention backend") as fault:
        plan("Qwen/Qwen3-8B", H100, block_size=24)
    assert fault.value.field == "block_size"


@pytest.mark.parametrize(
    ("version", "block"),
    [
        # Qwen3-Next keeps 1,097,728 bytes of state and 2,048 bytes of attention a token on one rank of one: 536 tokens.
        ("0.11.0", 544),
        ("0.17.1", 544),
        ("0.32.0", 544),
    ],
)
def test_the_block_of_attention_is_raised_until_a_page_holds_a_state(version, block):
    raised = plan("Qwen/Qwen3-Next-80B-A3B-Instruct", H100, version)
    assert (raised.attention, raised.state_page_bytes) == (block, block * 2048)


def test_steps_of_32_where_blackwell_had_wide_heads():
    qwen = "Qwen/Qwen3-Next-80B-A3B-Instruct"
    assert plan(qwen, B200, "0.16.0").attention == 544  # 17 x 32
    assert plan(qwen, B200, "0.16.0", tensor_parallel_size=2).attention == 544


def test_a_state_in_float32_doubles_the_block():
    # (3 x 8192) x 2 + (32 x 128 x 128) x 4 bytes over 2,048 bytes a token are 1,048 tokens, in steps of 16: 1,056.
    qwen = "Qwen/Qwen3-Next-80B-A3B-Instruct"
    assert plan(qwen, H100, other=(("mamba_ssm_cache_dtype", "float32"),)).attention == 1056


def test_flashinfers_delta_net_wants_blocks_of_64_from_0_33_on():
    # 536 tokens in steps of 64.
    assert plan("Qwen/Qwen3-Next-80B-A3B-Instruct", H100, "0.33.0").attention == 576
    assert plan("Qwen/Qwen3-Next-80B-A3B-Instruct", A100, "0.33.0").attention == 544


def test_states_ran_on_the_first_engine_until_0_10_1():
    with pytest.raises(Unknown, match="first engine") as fault:
        plan("Qwen/Qwen3-Next-80B-A3B-Instruct", H100, "0.10.1")
    assert fault.value.field == "vllm_version"


def test_layers_that_keep_their_own_dtype_share_the_pages_of_the_others():
    # fp8 keeps 2,048 bytes a token and skipped layers 4,096: a page of 32 tokens in fp8 holds 16 of theirs.
    skipping = plan("Qwen/Qwen3-8B", H100, kv_cache_dtype="fp8", other=(("kv_cache_dtype_skip_layers", "0 1"),))
    assert (skipping.attention, skipping.skipped_page_bytes) == (32, 65536)
