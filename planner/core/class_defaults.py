"""What Hugging Face's configuration classes assume for keys that a config.json leaves out.

Only the keys that decide shapes. Source: the configuration classes of transformers 5.19 (the release that vLLM 0.32
runs on); `tests/engine` asks vLLM about configs that omit them. A model type without a row ships its class with the
checkpoint, so nothing is assumed for it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.hybrid_defaults import HYBRID_DEFAULTS
from planner.core.mixture_defaults import MIXTURE_DEFAULTS
from planner.core.multimodal_defaults import LANGUAGE_INSIDE, MULTIMODAL_DEFAULTS

_LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}
_MINISTRAL_ROPE = {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 16384}


def _sizes(
    hidden_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    intermediate_size: int | None,
    vocab_size: int,
    max_position_embeddings: int | None = None,
    **others: object,
) -> Mapping[str, object]:
    sizes = {
        "hidden_size": hidden_size,
        "num_hidden_layers": num_hidden_layers,
        "num_attention_heads": num_attention_heads,
        "intermediate_size": intermediate_size,
        "vocab_size": vocab_size,
        "max_position_embeddings": max_position_embeddings,
    }
    return {**{key: size for key, size in sizes.items() if size is not None}, **others}


_LANGUAGE_DEFAULTS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "llama": _sizes(4096, 32, 32, 11008, 32000, 2048),
        "mistral": _sizes(4096, 32, 32, 14336, 32000, 131072, num_key_value_heads=8, sliding_window=4096),
        "ministral3": _sizes(
            4096, 34, 32, 14336, 131072, 262144, num_key_value_heads=8, head_dim=128, rope_scaling=_MINISTRAL_ROPE
        ),
        "qwen2": _sizes(4096, 32, 32, 22016, 151936, 32768, num_key_value_heads=32, sliding_window=4096),
        "qwen3": _sizes(4096, 32, 32, 22016, 151936, 32768, num_key_value_heads=32, head_dim=128, sliding_window=4096),
        "opt": _sizes(
            768,
            12,
            12,
            3072,
            50272,
            2048,
            tie_word_embeddings=True,
            enable_bias=True,
            layer_norm_elementwise_affine=True,
            do_layer_norm_before=True,
        ),
        "gpt2": _sizes(768, 12, 12, None, 50257, 1024, tie_word_embeddings=True),
        "gptj": _sizes(4096, 28, 16, None, 50400, 2048, rotary_dim=64),
        "gpt_bigcode": _sizes(768, 12, 12, None, 50257, 1024, tie_word_embeddings=True, multi_query=True),
        "bloom": _sizes(64, 2, 8, None, 250880, tie_word_embeddings=True),
        "falcon": _sizes(
            4544, 32, 71, None, 65024, 2048, tie_word_embeddings=True, multi_query=True, parallel_attn=True
        ),
        "gemma": _sizes(
            3072, 28, 16, 24576, 256000, 8192, num_key_value_heads=16, head_dim=256, tie_word_embeddings=True
        ),
        "gpt_neox": _sizes(6144, 44, 64, 24576, 50432, 2048, attention_bias=True, partial_rotary_factor=0.25),
        "phi": _sizes(2048, 24, 32, 8192, 51200, 2048, partial_rotary_factor=0.5),
        "phi3": _sizes(3072, 32, 32, 8192, 32064, 4096, original_max_position_embeddings=4096),
        "granite": _sizes(4096, 32, 32, 11008, 32000, 2048),
        "olmo": _sizes(4096, 32, 32, 11008, 50304, 2048),
        "olmo2": _sizes(4096, 32, 32, 11008, 50304, 2048),
        "stablelm": _sizes(2560, 32, 32, 6912, 50304, 4096, num_key_value_heads=32, partial_rotary_factor=0.25),
        "starcoder2": _sizes(
            3072, 30, 24, 12288, 49152, 4096, num_key_value_heads=2, tie_word_embeddings=True, use_bias=True
        ),
        "cohere": _sizes(8192, 40, 64, 22528, 256000, 8192, tie_word_embeddings=True),
        "glm": _sizes(
            4096,
            40,
            32,
            13696,
            151552,
            131072,
            num_key_value_heads=2,
            head_dim=128,
            attention_bias=True,
            partial_rotary_factor=0.5,
        ),
        "nemotron": _sizes(6144, 32, 48, 24576, 256000, 4096, partial_rotary_factor=0.5),
        "seed_oss": _sizes(
            4096, 64, 80, 27648, 155136, 524288, num_key_value_heads=8, head_dim=128, attention_bias=True
        ),
        "smollm3": _sizes(2048, 36, 16, 11008, 128256, 32768, num_key_value_heads=4, tie_word_embeddings=True),
        "arcee": _sizes(2560, 32, 32, 18432, 32000, 4096),
        "apertus": _sizes(4096, 32, 32, 14336, 131072, 65536, rope_scaling=_LLAMA3_ROPE),
        "ernie4_5": _sizes(
            1024, 18, 16, 3072, 103424, 131072, num_key_value_heads=2, head_dim=128, tie_word_embeddings=True
        ),
        "exaone4": _sizes(4096, 32, 32, 16384, 102400, 2048, num_key_value_heads=32, sliding_window=4096),
        "hunyuan_v1_dense": _sizes(4096, 32, 32, 11008, 290943, 2048),
        "jais2": _sizes(3328, 32, 26, 26624, 150272, 8192, attention_bias=True, mlp_bias=True),
        "hyperclovax": _sizes(4096, 32, 32, 11008, 32000, 2048, use_post_norm=True),
        "chatglm": _sizes(4096, 28, 32, 13696, 65024, 2048, num_key_value_heads=1),
        "glm4": _sizes(
            4096,
            40,
            32,
            13696,
            151552,
            131072,
            num_key_value_heads=2,
            head_dim=128,
            attention_bias=True,
            partial_rotary_factor=0.5,
        ),
        **MIXTURE_DEFAULTS,
        **HYBRID_DEFAULTS,
        **MULTIMODAL_DEFAULTS,
    }
)
CLASS_DEFAULTS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        **_LANGUAGE_DEFAULTS,
        **{outer: _LANGUAGE_DEFAULTS[inner] for outer, inner in LANGUAGE_INSIDE.items() if inner in _LANGUAGE_DEFAULTS},
    }
)
