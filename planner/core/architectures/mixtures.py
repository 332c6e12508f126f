"""The architectures with experts or latent attention, of every file of theirs, and older ones beside them."""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.architectures import (
    bailing,
    deepseek,
    deepseek_v4,
    glm_moe,
    gpt_oss,
    hunyuan_moe,
    kimi_linear,
    latent_kin,
    llama4,
    mimo,
    minimax,
    minimax_linear,
    mixtral,
    mpt,
    qwen_moe,
    sparse_latent,
    step,
    windowed_moe,
)
from planner.core.decoder import Architecture

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        **mixtral.ARCHITECTURES,
        **qwen_moe.ARCHITECTURES,
        **gpt_oss.ARCHITECTURES,
        **llama4.ARCHITECTURES,
        **glm_moe.ARCHITECTURES,
        **minimax.ARCHITECTURES,
        **minimax_linear.ARCHITECTURES,
        **deepseek.ARCHITECTURES,
        **deepseek_v4.ARCHITECTURES,
        **bailing.ARCHITECTURES,
        **windowed_moe.ARCHITECTURES,
        **mimo.ARCHITECTURES,
        **step.ARCHITECTURES,
        **hunyuan_moe.ARCHITECTURES,
        **mpt.ARCHITECTURES,
        **sparse_latent.ARCHITECTURES,
        **latent_kin.ARCHITECTURES,
        **kimi_linear.ARCHITECTURES,
    }
)
