"""What the language models inside models that see or hear assume for keys that a config.json leaves out.

Source: the configuration classes of transformers 5.19.
"""

from collections.abc import Mapping
from types import MappingProxyType

_QWEN2_VL: Mapping[str, object] = {
    "vocab_size": 152064,
    "hidden_size": 8192,
    "intermediate_size": 29568,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32768,
}
_QWEN3_VL: Mapping[str, object] = {
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "head_dim": 128,
    "max_position_embeddings": 128000,
}
_QWEN3_VL_MOE: Mapping[str, object] = {
    "vocab_size": 151936,
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 128,
    "max_position_embeddings": 128000,
    "tie_word_embeddings": True,
    "decoder_sparse_step": 1,
    "moe_intermediate_size": 1408,
    "num_experts_per_tok": 4,
    "num_experts": 60,
}
_WHISPER: Mapping[str, object] = {
    "vocab_size": 51865,
    "hidden_size": 384,
    "num_mel_bins": 80,
    "encoder_layers": 4,
    "encoder_attention_heads": 6,
    "encoder_ffn_dim": 1536,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "intermediate_size": 1536,
    "max_source_positions": 1500,
    "max_target_positions": 448,
    "tie_word_embeddings": True,
}

MULTIMODAL_DEFAULTS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "qwen2_vl": _QWEN2_VL,
        "qwen2_vl_text": _QWEN2_VL,
        "qwen2_5_vl": _QWEN2_VL,
        "qwen2_5_vl_text": _QWEN2_VL,
        "qwen3_vl": _QWEN3_VL,
        "qwen3_vl_text": _QWEN3_VL,
        "qwen3_vl_moe": _QWEN3_VL_MOE,
        "qwen3_vl_moe_text": _QWEN3_VL_MOE,
        "whisper": _WHISPER,
    }
)
LANGUAGE_INSIDE: Mapping[str, str] = MappingProxyType(
    {
        "gemma3": "gemma3_text",
        "gemma3n": "gemma3n_text",
        "gemma4": "gemma4_text",
        "qwen3_5": "qwen3_5_text",
        "qwen3_5_moe": "qwen3_5_moe_text",
        "llama4": "llama4_text",
        "mistral3": "mistral",
        "kimi_k25": "deepseek_v3",
        "kimi_k3": "kimi_linear",
    }
)
