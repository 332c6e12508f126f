"""The shapes that vLLM is asked about: five published models, and one small decoder for each planned family.

The published ones are the config.json of meta-llama/Llama-3.1-8B, Qwen/Qwen2-7B, Qwen/Qwen3-8B,
mistralai/Mistral-7B-v0.3, facebook/opt-125m, opt-350m and opt-1.3b, without the keys that no weight depends on.
"""

LLAMA_31_8B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
LLAMA_3_70B = {
    **LLAMA_31_8B,
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "max_position_embeddings": 8192,
    "rope_scaling": None,
}
LLAMA_32_1B = {
    **LLAMA_31_8B,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "head_dim": 64,
    "tie_word_embeddings": True,
    "rope_scaling": {**LLAMA_31_8B["rope_scaling"], "factor": 32.0},
}
QWEN2_7B = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 131072,
    "max_window_layers": 28,
    "rope_theta": 1000000.0,
    "sliding_window": 131072,
    "use_sliding_window": False,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
QWEN2_05B = {
    **QWEN2_7B,
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}
QWEN3_8B = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "rope_theta": 1000000,
    "sliding_window": None,
    "use_sliding_window": False,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
QWEN3_06B = {
    **QWEN3_8B,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "tie_word_embeddings": True,
}
MISTRAL_7B_V03 = {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32768,
    "max_position_embeddings": 32768,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
OPT_125M = {
    "architectures": ["OPTForCausalLM"],
    "model_type": "opt",
    "hidden_size": 768,
    "ffn_dim": 3072,
    "word_embed_proj_dim": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "vocab_size": 50272,
    "max_position_embeddings": 2048,
    "do_layer_norm_before": True,
    "torch_dtype": "float16",
}
OPT_350M = {
    **OPT_125M,
    "hidden_size": 1024,
    "ffn_dim": 4096,
    "word_embed_proj_dim": 512,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "do_layer_norm_before": False,
}
OPT_13B = {
    **OPT_125M,
    "hidden_size": 2048,
    "ffn_dim": 8192,
    "word_embed_proj_dim": 2048,
    "num_hidden_layers": 24,
    "num_attention_heads": 32,
}
PUBLISHED = {
    "Llama-3.1-8B": LLAMA_31_8B,
    "Llama-3-70B": LLAMA_3_70B,
    "Llama-3.2-1B": LLAMA_32_1B,
    "Qwen2-7B": QWEN2_7B,
    "Qwen2-0.5B": QWEN2_05B,
    "Qwen3-8B": QWEN3_8B,
    "Qwen3-0.6B": QWEN3_06B,
    "Mistral-7B-v0.3": MISTRAL_7B_V03,
    "opt-125m": OPT_125M,
    "opt-350m": OPT_350M,
    "opt-1.3b": OPT_13B,
}


def small(architecture, model_type, *, without=(), **keys):
    """A decoder of 3 layers: width 512, 8 heads, 2 KV heads, a vocabulary that is no multiple of 64."""
    sizes = {
        "architectures": [architecture],
        "model_type": model_type,
        "hidden_size": 512,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 1216,
        "vocab_size": 1000,
        "max_position_embeddings": 768,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "pad_token_id": 0,
        "torch_dtype": "bfloat16",
        **keys,
    }
    return {key: value for key, value in sizes.items() if key not in without}


def small_gpt(architecture, model_type, **keys):
    """The same under GPT-2's names."""
    names = {"n_embd": 512, "n_head": 8, "n_layer": 3, "n_positions": 768}
    head = {"architectures": [architecture], "model_type": model_type, "vocab_size": 1000, "torch_dtype": "bfloat16"}
    return {**head, **names, **keys}


def small_falcon(**keys):
    """A Falcon, whose older names vLLM still reads."""
    return small(
        "FalconForCausalLM",
        "falcon",
        without=("num_key_value_heads", "intermediate_size"),
        alibi=False,
        bias=False,
        **keys,
    )


GELU, RELU2 = {"hidden_act": "gelu"}, {"hidden_act": "relu2"}
FAMILIES = {
    "llama": small("LlamaForCausalLM", "llama"),
    "llama with biases, tied, wide heads": small(
        "LlamaForCausalLM", "llama", attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=96
    ),
    "llama, long by linear scaling": small(
        "LlamaForCausalLM", "llama", rope_scaling={"rope_type": "linear", "factor": 2.5}
    ),
    "llama, long by dynamic scaling": small(
        "LlamaForCausalLM", "llama", rope_scaling={"rope_type": "dynamic", "factor": 2.0}
    ),
    "llama by its old name": small("LLaMAForCausalLM", "llama"),
    "internlm3": small("InternLM3ForCausalLM", "internlm3", qkv_bias=True, bias=True),
    "iquestcoder": small("IQuestCoderForCausalLM", "iquestcoder"),
    "telechat3": small("TeleChat3ForCausalLM", "telechat3"),
    "mistral": small("MistralForCausalLM", "mistral", sliding_window=None),
    "ministral3": small("Ministral3ForCausalLM", "ministral3"),
    "qwen2": small("Qwen2ForCausalLM", "qwen2"),
    "qwen2, long by yarn": small(
        "Qwen2ForCausalLM",
        "qwen2",
        rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 192},
    ),
    "qwen3": small("Qwen3ForCausalLM", "qwen3", head_dim=128),
    "qwen3 with bias": small("Qwen3ForCausalLM", "qwen3", head_dim=128, attention_bias=True),
    "mimo": small("MiMoForCausalLM", "mimo", attention_bias=True),
    "opt": small("OPTForCausalLM", "opt", ffn_dim=1216, word_embed_proj_dim=512),
    "opt, projected, no final norm": small(
        "OPTForCausalLM", "opt", ffn_dim=1216, word_embed_proj_dim=256, do_layer_norm_before=False
    ),
    "opt without biases": small(
        "OPTForCausalLM",
        "opt",
        ffn_dim=1216,
        word_embed_proj_dim=512,
        enable_bias=False,
        layer_norm_elementwise_affine=False,
    ),
    "gpt2": small_gpt("GPT2LMHeadModel", "gpt2"),
    "gpt2, narrow MLP, own head": small_gpt("GPT2LMHeadModel", "gpt2", n_inner=1216, tie_word_embeddings=False),
    "gptj": small_gpt("GPTJForCausalLM", "gptj", rotary_dim=32),
    "gpt_bigcode": small_gpt("GPTBigCodeForCausalLM", "gpt_bigcode", n_inner=2048, multi_query=True),
    "gpt_neox": small("GPTNeoXForCausalLM", "gpt_neox", without=("num_key_value_heads",), rotary_pct=0.25, **GELU),
    "gpt_neox without attention bias": small(
        "GPTNeoXForCausalLM", "gpt_neox", without=("num_key_value_heads",), attention_bias=False, **GELU
    ),
    "bloom": small("BloomForCausalLM", "bloom"),
    "falcon, multi-query": small_falcon(multi_query=True),
    "falcon, grouped": small_falcon(new_decoder_architecture=True, num_kv_heads=2),
    "falcon, grouped, one norm": small_falcon(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1),
    "falcon, sequential": small_falcon(multi_query=False, parallel_attn=False),
    "gemma": small("GemmaForCausalLM", "gemma", head_dim=128, hidden_activation="gelu_pytorch_tanh", **GELU),
    "phi": small("PhiForCausalLM", "phi", num_key_value_heads=8, partial_rotary_factor=0.5, **GELU),
    "phi, grouped, normalised": small("PhiForCausalLM", "phi", qk_layernorm=True, **GELU),
    "phi3": small("Phi3ForCausalLM", "phi3", sliding_window=None),
    "phi3, long by longrope": small(
        "Phi3ForCausalLM",
        "phi3",
        sliding_window=None,
        original_max_position_embeddings=256,
        rope_scaling={"type": "longrope", "short_factor": [1.0] * 32, "long_factor": [2.0] * 32},
    ),
    "granite": small("GraniteForCausalLM", "granite"),
    "granite with biases, tied": small(
        "GraniteForCausalLM", "granite", attention_bias=True, mlp_bias=True, tie_word_embeddings=True
    ),
    "olmo": small("OlmoForCausalLM", "olmo"),
    "olmo2": small("Olmo2ForCausalLM", "olmo2"),
    "stablelm": small("StableLmForCausalLM", "stablelm", use_qkv_bias=True, partial_rotary_factor=0.25),
    "starcoder2": small("Starcoder2ForCausalLM", "starcoder2", sliding_window=None, use_bias=True),
    "starcoder2 without biases, own head": small(
        "Starcoder2ForCausalLM", "starcoder2", sliding_window=None, use_bias=False, tie_word_embeddings=False
    ),
    "cohere": small("CohereForCausalLM", "cohere"),
    "cohere, normalised, longer": small("CohereForCausalLM", "cohere", use_qk_norm=True, model_max_length=1024),
    "internlm2": small("InternLM2ForCausalLM", "internlm2"),
    "internlm2, tied": small("InternLM2ForCausalLM", "internlm2", tie_word_embeddings=True),
    "chatglm": small(
        "ChatGLMModel",
        "chatglm",
        num_layers=3,
        multi_query_attention=True,
        multi_query_group_num=2,
        ffn_hidden_size=1216,
        padded_vocab_size=1024,
        seq_length=768,
        kv_channels=64,
        add_qkv_bias=True,
        rmsnorm=True,
        post_layer_norm=True,
        original_rope=True,
        layernorm_epsilon=1e-5,
        apply_query_key_layer_scaling=True,
        tie_word_embeddings=False,
        without=("num_hidden_layers", "num_key_value_heads", "intermediate_size", "vocab_size"),
    ),
    "glm": small("GlmForCausalLM", "glm", head_dim=64, attention_bias=True),
    "glm4": small("Glm4ForCausalLM", "glm4", head_dim=64, attention_bias=True),
    "exaone": small(
        "ExaoneForCausalLM",
        "exaone",
        num_layers=3,
        activation_function="silu",
        layer_norm_epsilon=1e-5,
        without=("num_hidden_layers",),
    ),
    "exaone4": small(
        "Exaone4ForCausalLM", "exaone4", sliding_window=None, head_dim=64, layer_types=["full_attention"] * 3
    ),
    "nemotron": small("NemotronForCausalLM", "nemotron", **RELU2),
    "seed_oss": small("SeedOssForCausalLM", "seed_oss", head_dim=128),
    "smollm3": small("SmolLM3ForCausalLM", "smollm3"),
    "arcee": small("ArceeForCausalLM", "arcee", **RELU2),
    "solar": small("SolarForCausalLM", "solar", **{f"bskcn_{name}": [1] for name in (1, 2, 3, 4)}, bskcn_tv=[0.9, 0.8]),
    "apertus": small("ApertusForCausalLM", "apertus", hidden_act="xielu"),
    "ernie4_5": small("Ernie4_5ForCausalLM", "ernie4_5", head_dim=64),
    "hyperclovax": small("HyperCLOVAXForCausalLM", "hyperclovax"),
    "orion": small("OrionForCausalLM", "orion"),
    "minicpm": small("MiniCPMForCausalLM", "minicpm", scale_emb=12, dim_model_base=256, scale_depth=1.4),
    "teleflm": small("TeleFLMForCausalLM", "TeleFLM", use_mup=False),
    "hunyuan": small("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", head_dim=64),
    "jais2": small("Jais2ForCausalLM", "jais2", **RELU2),
}
COMPUTES_WHILE_BUILT = frozenset({"bloom", "apertus"})
