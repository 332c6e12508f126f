"""Small shapes of the families with windows, layers of different shapes or recurrent states: one for each key that
changes what vLLM builds, and the published models that vLLM is asked about."""

from tests.engine.shapes import small

WINDOW = {"sliding_window": 256}
IN_TURN = ["sliding_attention", "full_attention", "sliding_attention"]
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 96}
LOCAL_AND_LONG = {"rope_local_base_freq": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
TANH = {"hidden_activation": "gelu_pytorch_tanh"}

WINDOWS = {
    "mistral, window": small("MistralForCausalLM", "mistral", **WINDOW),
    "mistral, window left out": small("MistralForCausalLM", "mistral"),
    "mistral, windows in turn": small("MistralForCausalLM", "mistral", layer_types=IN_TURN, **WINDOW),
    "ministral3, window": small("Ministral3ForCausalLM", "ministral3", **WINDOW),
    "llama, window": small("LlamaForCausalLM", "llama", **WINDOW),
    "llama, windows in turn": small("LlamaForCausalLM", "llama", layer_types=IN_TURN, **WINDOW),
    "phi3, window": small("Phi3ForCausalLM", "phi3", **WINDOW),
    "phi3, window of nothing": small("Phi3ForCausalLM", "phi3", sliding_window=0),
    "starcoder2, window": small("Starcoder2ForCausalLM", "starcoder2", use_bias=True, **WINDOW),
    "qwen2, window off": small("Qwen2ForCausalLM", "qwen2", use_sliding_window=False, **WINDOW),
    "qwen2, window everywhere": small(
        "Qwen2ForCausalLM", "qwen2", use_sliding_window=True, max_window_layers=0, **WINDOW
    ),
    "qwen2, window nowhere": small("Qwen2ForCausalLM", "qwen2", use_sliding_window=True, max_window_layers=3, **WINDOW),
    "qwen3, window everywhere": small(
        "Qwen3ForCausalLM", "qwen3", head_dim=128, use_sliding_window=True, max_window_layers=0, **WINDOW
    ),
    "stablelm, window": small("StableLmForCausalLM", "stablelm", partial_rotary_factor=0.25, **WINDOW),
    "internlm2, windows in turn, ignored": small("InternLM2ForCausalLM", "internlm2", layer_types=IN_TURN, **WINDOW),
    "seed_oss, windows in turn": small("SeedOssForCausalLM", "seed_oss", head_dim=128, layer_types=IN_TURN, **WINDOW),
    "apertus, windows in turn": small(
        "ApertusForCausalLM", "apertus", hidden_act="xielu", layer_types=IN_TURN, **WINDOW
    ),
    "exaone4, every fourth full": small("Exaone4ForCausalLM", "exaone4", head_dim=64, num_hidden_layers=5, **WINDOW),
    "exaone4, every second full": small(
        "Exaone4ForCausalLM", "exaone4", head_dim=64, sliding_window_pattern=2, **WINDOW
    ),
    "smollm3, windows where nothing rotates": small(
        "SmolLM3ForCausalLM", "smollm3", use_sliding_window=True, num_hidden_layers=5, **WINDOW
    ),
    "cohere2": small("Cohere2ForCausalLM", "cohere2", num_hidden_layers=5, **WINDOW),
    "cohere2, windows in turn": small("Cohere2ForCausalLM", "cohere2", layer_types=IN_TURN, **WINDOW),
    "olmo3": small("Olmo3ForCausalLM", "olmo3", num_hidden_layers=5, **WINDOW),
    "olmo3, long by yarn": small("Olmo3ForCausalLM", "olmo3", num_hidden_layers=5, rope_scaling=YARN, **WINDOW),
    "granite, windows and sinks": small("GraniteForCausalLM", "granite", layer_types=IN_TURN, **WINDOW),
    "granite, windows without sinks": small(
        "GraniteForCausalLM", "granite", layer_types=IN_TURN, attention_sinks=False, **WINDOW
    ),
    "granite, a base a layer": small(
        "GraniteForCausalLM", "granite", layer_types=IN_TURN, layer_rope_theta=[10000.0, 0, 20000.0], **WINDOW
    ),
}

GEMMA3N = {
    **TANH,
    **WINDOW,
    "head_dim": 64,
    "num_hidden_layers": 10,
    "num_kv_shared_layers": 4,
    "vocab_size_per_layer_input": 900,
    "hidden_size_per_layer_input": 64,
    "laurel_rank": 16,
    "altup_num_inputs": 4,
}
GEMMA4 = {**TANH, **WINDOW, "head_dim": 64, "global_head_dim": 128, "num_hidden_layers": 7}
GEMMA4_EXPERTS = {"num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 256, "enable_moe_block": True}
GEMMAS = {
    "gemma2": small("Gemma2ForCausalLM", "gemma2", head_dim=96, **TANH, **WINDOW),
    "gemma2, biases, windows in turn": small(
        "Gemma2ForCausalLM", "gemma2", head_dim=96, attention_bias=True, layer_types=IN_TURN, **TANH, **WINDOW
    ),
    "gemma3": small("Gemma3ForCausalLM", "gemma3_text", head_dim=96, num_hidden_layers=7, **TANH, **WINDOW),
    "gemma3, long, own head, every third full": small(
        "Gemma3ForCausalLM",
        "gemma3_text",
        head_dim=96,
        num_hidden_layers=7,
        sliding_window_pattern=3,
        tie_word_embeddings=False,
        **LOCAL_AND_LONG,
        **TANH,
        **WINDOW,
    ),
    "gemma3n": small("Gemma3nForCausalLM", "gemma3n_text", **GEMMA3N),
    "gemma3n, biases, two widths, two streams": small(
        "Gemma3nForCausalLM",
        "gemma3n_text",
        **{**GEMMA3N, "intermediate_size": [1024] * 5 + [2048] * 5, "altup_num_inputs": 2, "attention_bias": True},
    ),
    "gemma4": small("Gemma4ForCausalLM", "gemma4_text", hidden_size_per_layer_input=0, **GEMMA4),
    "gemma4, keys as values, other KV heads": small(
        "Gemma4ForCausalLM",
        "gemma4_text",
        hidden_size_per_layer_input=0,
        attention_k_eq_v=True,
        num_global_key_value_heads=1,
        **GEMMA4,
    ),
    "gemma4, inputs of each layer, borrowed keys": small(
        "Gemma4ForCausalLM",
        "gemma4_text",
        hidden_size_per_layer_input=64,
        vocab_size_per_layer_input=900,
        num_kv_shared_layers=3,
        use_double_wide_mlp=True,
        layer_types=["sliding_attention", "full_attention"] * 3 + ["full_attention"],
        **GEMMA4,
    ),
    "gemma4, experts, own head": small(
        "Gemma4ForCausalLM",
        "gemma4_text",
        hidden_size_per_layer_input=0,
        tie_word_embeddings=False,
        **GEMMA4,
        **GEMMA4_EXPERTS,
    ),
}

DELTA_NET = {
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 64,
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "num_hidden_layers": 5,
    "head_dim": 96,
}
EXPERTS = {
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 256,
    "shared_expert_intermediate_size": 384,
}
DELTA_NETS = {
    "qwen3_next": small("Qwen3NextForCausalLM", "qwen3_next", **DELTA_NET, **EXPERTS),
    "qwen3_next, some layers dense, no gate": small(
        "Qwen3NextForCausalLM",
        "qwen3_next",
        **{**DELTA_NET, "num_hidden_layers": 6},
        **EXPERTS,
        mlp_only_layers=[0],
        decoder_sparse_step=2,
        attn_output_gate=False,
        full_attention_interval=2,
    ),
    "qwen3_5": small("Qwen3_5ForCausalLM", "qwen3_5_text", **DELTA_NET),
    "qwen3_5, tied": small("Qwen3_5ForCausalLM", "qwen3_5_text", tie_word_embeddings=True, **DELTA_NET),
    "qwen3_5_moe": small("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", **DELTA_NET, **EXPERTS),
    "olmo_hybrid": small("OlmoHybridForCausalLM", "olmo_hybrid", **{**DELTA_NET, "head_dim": 64}),
    "olmo_hybrid, not rotated, tied": small(
        "OlmoHybridForCausalLM",
        "olmo_hybrid",
        without=("rope_theta",),
        tie_word_embeddings=True,
        rope_parameters={"rope_theta": None, "rope_type": "default"},
        **{**DELTA_NET, "head_dim": 64},
    ),
}

ATTENDS_TO_NOTHING = (
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "max_position_embeddings",
    "rope_theta",
)
PURE = {"state_size": 16, "conv_kernel": 4, "expand": 2, "use_bias": False, "use_conv_bias": True}
MAMBA2 = {
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_n_heads": 16,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
}
ZAMBA2 = {
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_ngroups": 1,
    "n_mamba_heads": 8,
    "num_mem_blocks": 2,
    "adapter_rank": 16,
    "use_conv_bias": True,
    "num_hidden_layers": 6,
    "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid", "hybrid", "mamba"],
    "hidden_act": "gelu",
}
NEMOTRON = {
    "mamba_num_heads": 16,
    "mamba_head_dim": 64,
    "n_groups": 4,
    "ssm_state_size": 16,
    "conv_kernel": 4,
    "head_dim": 96,
    "mlp_hidden_act": "relu2",
    "use_mamba_kernels": False,
}
NEMOTRON_EXPERTS = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 256,
    "moe_shared_expert_intermediate_size": 384,
}
STATES = {
    "mamba": small("MambaForCausalLM", "mamba", without=ATTENDS_TO_NOTHING, **PURE),
    "mamba, biases, own head and widths": small(
        "MambaForCausalLM",
        "mamba",
        without=tuple(key for key in ATTENDS_TO_NOTHING if key != "intermediate_size"),
        **{**PURE, "use_bias": True, "use_conv_bias": False},
        intermediate_size=768,
        time_step_rank=24,
        tie_word_embeddings=False,
    ),
    "falcon_mamba": small("FalconMambaForCausalLM", "falcon_mamba", without=ATTENDS_TO_NOTHING, **PURE),
    "mamba2": small(
        "Mamba2ForCausalLM", "mamba2", without=ATTENDS_TO_NOTHING, num_heads=16, head_dim=64, n_groups=4, **PURE
    ),
    "mamba2, one group, biases, tied": small(
        "Mamba2ForCausalLM",
        "mamba2",
        without=ATTENDS_TO_NOTHING,
        num_heads=16,
        head_dim=64,
        n_groups=1,
        tie_word_embeddings=True,
        **{**PURE, "use_bias": True},
    ),
    "jamba": small(
        "JambaForCausalLM",
        "jamba",
        num_hidden_layers=6,
        attn_layer_period=4,
        attn_layer_offset=2,
        num_experts=4,
        use_mamba_kernels=False,
    ),
    "jamba, no experts, biases, tied in name": small(
        "JambaForCausalLM",
        "jamba",
        attn_layer_period=2,
        attn_layer_offset=1,
        num_experts=1,
        mamba_proj_bias=True,
        mamba_conv_bias=False,
        mamba_dt_rank=24,
        mamba_expand=1,
        use_mamba_kernels=False,
        tie_word_embeddings=True,
    ),
    "falcon_h1": small("FalconH1ForCausalLM", "falcon_h1", mamba_d_ssm=1024, **MAMBA2),
    "falcon_h1, four groups, normalised, wide heads": small(
        "FalconH1ForCausalLM",
        "falcon_h1",
        mamba_d_ssm=None,
        mamba_rms_norm=True,
        head_dim=96,
        **{**MAMBA2, "mamba_n_groups": 4},
    ),
    "granite 4": small(
        "GraniteMoeHybridForCausalLM",
        "granitemoehybrid",
        layer_types=["mamba", "attention", "mamba"],
        num_local_experts=4,
        num_experts_per_tok=2,
        shared_intermediate_size=768,
        **MAMBA2,
    ),
    "granite 4, dense, rotated, tied, biases": small(
        "GraniteMoeHybridForCausalLM",
        "granitemoehybrid",
        layer_types=["mamba", "attention", "mamba"],
        num_local_experts=0,
        num_experts_per_tok=0,
        shared_intermediate_size=768,
        position_embedding_type="rope",
        attention_bias=True,
        tie_word_embeddings=True,
        **MAMBA2,
    ),
    "nemotron_h": small("NemotronHForCausalLM", "nemotron_h", hybrid_override_pattern="M-M*-M", **NEMOTRON),
    "nemotron_h, biases, window, a width each": small(
        "NemotronHForCausalLM",
        "nemotron_h",
        hybrid_override_pattern="M-*-M*",
        use_bias=True,
        mlp_bias=True,
        use_conv_bias=False,
        **WINDOW,
        **NEMOTRON,
    ),
    "nemotron_h, experts": small(
        "NemotronHForCausalLM", "nemotron_h", hybrid_override_pattern="ME*EME", **NEMOTRON, **NEMOTRON_EXPERTS
    ),
    "nemotron_h, experts on a latent": small(
        "NemotronHForCausalLM",
        "nemotron_h",
        layers_block_type=["mamba", "moe", "attention", "moe", "mamba", "moe"],
        moe_latent_size=128,
        n_shared_experts=2,
        **NEMOTRON,
        **NEMOTRON_EXPERTS,
    ),
    "zamba2": small("Zamba2ForCausalLM", "zamba2", without=("num_key_value_heads",), **ZAMBA2),
    "zamba2, one block, rotated, adapters, biases": small(
        "Zamba2ForCausalLM",
        "zamba2",
        without=("num_key_value_heads",),
        use_mem_rope=True,
        use_shared_attention_adapter=True,
        add_bias_linear=True,
        **{**ZAMBA2, "num_mem_blocks": 1, "mamba_ngroups": 2},
    ),
    "lfm2": small(
        "Lfm2ForCausalLM",
        "lfm2",
        layer_types=["conv", "full_attention", "conv"],
        block_auto_adjust_ff_dim=False,
        conv_dim=512,
        block_dim=512,
    ),
    "lfm2, adjusted width, biases": small(
        "Lfm2ForCausalLM",
        "lfm2",
        full_attn_idxs=[0, 2],
        conv_dim=512,
        block_dim=512,
        conv_bias=True,
        block_ffn_dim_multiplier=1.3,
        block_multiple_of=64,
        conv_L_cache=4,
    ),
    "lfm2_moe": small(
        "Lfm2MoeForCausalLM",
        "lfm2_moe",
        num_hidden_layers=6,
        layer_types=["conv", "full_attention"] * 3,
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=256,
        num_dense_layers=1,
    ),
    "lfm2_moe, no selection bias": small(
        "Lfm2MoeForCausalLM",
        "lfm2_moe",
        layer_types=["conv", "full_attention", "conv"],
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=256,
        num_dense_layers=0,
        use_expert_bias=False,
    ),
}


def block(group, width, *, attends=True, forwards=True):
    """One block of an architecture search: query heads a KV head, and the width of its MLP in hidden sizes."""
    attention = {"no_op": not attends, "n_heads_in_group": group, "replace_with_linear": False}
    return {"attention": attention, "ffn": {"no_op": not forwards, "ffn_mult": width, "replace_with_linear": False}}


BLOCKS = {
    "nemotron-nas": small(
        "DeciLMForCausalLM",
        "nemotron-nas",
        num_hidden_layers=4,
        num_key_value_heads=None,
        block_configs=[
            block(2, 1.5),
            block(4, 2.25),
            block(None, 1.0, attends=False),
            block(2, None, forwards=False),
        ],
    ),
}

HYBRIDS = WINDOWS | GEMMAS | DELTA_NETS | STATES | BLOCKS
COMPUTES_WHILE_BUILT = frozenset({"apertus, windows in turn"})
CATALOGUED = (
    "google/gemma-2-9b-it",
    "google/gemma-2-27b-it",
    "google/gemma-3-1b-it",
    "mistralai/Mistral-7B-v0.1",
    "microsoft/Phi-4-mini-instruct",
    "bigcode/starcoder2-7b",
    "HuggingFaceTB/SmolLM3-3B",
    "allenai/Olmo-3-1025-7B",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "ibm-granite/granite-4-8b-dense-hybrid",
    "nvidia/Nemotron-H-56B-Base-8K",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
)
