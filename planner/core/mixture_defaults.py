"""What the configuration classes of models with experts or latent attention assume for keys left out.

Only the keys that decide shapes. Source: the configuration classes of transformers 5.19, and those that vLLM 0.32
brings itself (`transformers_utils.configs`).
"""

from collections.abc import Mapping
from types import MappingProxyType

GPT_OSS_ROPE = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}


def _sizes(
    hidden_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    num_key_value_heads: int,
    intermediate_size: int,
    vocab_size: int,
    max_position_embeddings: int,
    **others: object,
) -> Mapping[str, object]:
    return {
        "hidden_size": hidden_size,
        "num_hidden_layers": num_hidden_layers,
        "num_attention_heads": num_attention_heads,
        "num_key_value_heads": num_key_value_heads,
        "intermediate_size": intermediate_size,
        "vocab_size": vocab_size,
        "max_position_embeddings": max_position_embeddings,
        **others,
    }


MIXTURE_DEFAULTS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "mixtral": _sizes(4096, 32, 32, 8, 14336, 32000, 131072, num_local_experts=8, num_experts_per_tok=2),
        "qwen2_moe": _sizes(
            2048,
            24,
            16,
            16,
            5632,
            151936,
            32768,
            decoder_sparse_step=1,
            moe_intermediate_size=1408,
            shared_expert_intermediate_size=5632,
            num_experts=60,
            num_experts_per_tok=4,
            qkv_bias=True,
        ),
        "qwen3_moe": _sizes(
            2048,
            24,
            32,
            4,
            6144,
            151936,
            32768,
            decoder_sparse_step=1,
            moe_intermediate_size=768,
            num_experts=128,
            num_experts_per_tok=8,
        ),
        "gpt_oss": _sizes(
            2880,
            36,
            64,
            8,
            2880,
            201088,
            131072,
            head_dim=64,
            num_local_experts=128,
            num_experts_per_tok=4,
            sliding_window=128,
            rope_scaling=GPT_OSS_ROPE,
        ),
    }
)
