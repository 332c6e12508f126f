"""Small models that draft for themselves, one for each kind of head, and small drafters for a small Llama."""

from tests.engine.shapes import small

EXPERTS = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 256,
    "first_k_dense_replace": 1,
    "routed_scaling_factor": 1.0,
    "norm_topk_prob": True,
    "num_nextn_predict_layers": 1,
}
HEADS = {
    "deepseek": small(
        "DeepseekV3ForCausalLM",
        "deepseek_v3",
        q_lora_rank=128,
        kv_lora_rank=64,
        qk_nope_head_dim=32,
        qk_rope_head_dim=16,
        v_head_dim=32,
        n_group=2,
        topk_group=1,
        scoring_func="sigmoid",
        topk_method="noaux_tc",
        **{**EXPERTS, "num_key_value_heads": 8},
    ),
    "glm4-moe": small(
        "Glm4MoeForCausalLM",
        "glm4_moe",
        head_dim=64,
        n_group=1,
        topk_group=1,
        use_qk_norm=True,
        attention_bias=True,
        partial_rotary_factor=0.5,
        **EXPERTS,
    ),
    "mimo, two heads": small("MiMoForCausalLM", "mimo", attention_bias=True, num_nextn_predict_layers=2),
    "qwen3-next": small(
        "Qwen3NextForCausalLM",
        "qwen3_next",
        num_hidden_layers=4,
        head_dim=64,
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=256,
        shared_expert_intermediate_size=256,
        decoder_sparse_step=1,
        linear_num_key_heads=4,
        linear_num_value_heads=8,
        linear_key_head_dim=64,
        linear_value_head_dim=64,
        linear_conv_kernel_dim=4,
        full_attention_interval=4,
        partial_rotary_factor=0.25,
        norm_topk_prob=True,
        mlp_only_layers=[],
    ),
}
TARGET = small("LlamaForCausalLM", "llama")
NARROW = {"hidden_size": 256, "num_attention_heads": 4, "max_position_embeddings": 512}
EAGLE3 = "LlamaForCausalLMEagle3"
DRAFTERS = {
    "eagle": ("eagle", small("LlamaForCausalLM", "llama", num_hidden_layers=1), []),
    "eagle3": ("eagle3", small(EAGLE3, "llama", num_hidden_layers=1, draft_vocab_size=320), ["lm_head"]),
    "eagle3, two narrow layers": (
        "eagle3",
        small(EAGLE3, "llama", num_hidden_layers=2, target_hidden_size=512, **NARROW),
        ["lm_head", "embed_tokens"],
    ),
    "a whole model": (
        "draft_model",
        small("LlamaForCausalLM", "llama", num_hidden_layers=2, tie_word_embeddings=True, **NARROW),
        [],
    ),
}
