"""Small models that see or hear, one for each planned kind: 2 layers of everything, as many heads as TP 4 divides."""

from tests.engine.shapes import small

TEXT_KEYS = ("architectures", "torch_dtype")


def text(model_type, *, without=(), **keys):
    """The keys of a small language model, as `text_config` holds them."""
    sizes = small("", model_type, num_hidden_layers=2, without=(*TEXT_KEYS, *without), **keys)
    return {"head_dim": 64, **sizes} if "head_dim" not in without else sizes


def seeing(architecture, model_type, language, vision, **keys):
    """A model with a tower: its language model nested, as most checkpoints have it."""
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
        "text_config": language,
        "vision_config": vision,
        **keys,
    }


QWEN_VISION = {
    "depth": 2,
    "num_heads": 4,
    "hidden_size": 256,
    "intermediate_size": 704,
    "out_hidden_size": 512,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "hidden_act": "silu",
}
QWEN2_VISION = {**QWEN_VISION, "embed_dim": 256, "hidden_size": 512, "mlp_ratio": 4}
QWEN3_VISION = {
    **QWEN_VISION,
    "num_position_embeddings": 64,
    "deepstack_visual_indexes": [0],
    "hidden_act": "gelu_pytorch_tanh",
}
SIGLIP = {
    "model_type": "siglip_vision_model",
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 56,
    "patch_size": 14,
}
CLIP = {**SIGLIP, "model_type": "clip_vision_model", "projection_dim": 64}
PIXTRAL = {**SIGLIP, "model_type": "pixtral", "head_dim": 64}
GEMMA4_VISION = {
    "model_type": "gemma4_vision",
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "patch_size": 16,
    "position_embedding_size": 128,
}
LLAMA4_VISION = {
    "model_type": "llama4_vision_model",
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 56,
    "patch_size": 14,
    "vision_output_dim": 320,
    "projector_input_dim": 320,
    "projector_output_dim": 320,
    "pixel_shuffle_ratio": 0.5,
}
MOONVIT = {
    "model_type": "moonvit",
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "patch_size": 14,
    "init_pos_emb_height": 16,
    "init_pos_emb_width": 16,
    "merge_kernel_size": [2, 2],
}
KIMI_VISION = {"merge_kernel_size": [2, 2], "mm_projector_type": "patchmerger", "patch_size": 14}
K3_VISION = {
    **KIMI_VISION,
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "qkv_hidden_size": 384,
    "norm_type": "rmsnorm",
    "attn_bias": False,
    "linear_bias": False,
    "patch_embed_proj_bias": False,
    "mm_projector_type": "patchmergerv2",
    "projector_ln_eps": 1e-5,
    "activation_func": "gelu_pytorch_tanh",
}
GLM_VISION = {
    "depth": 2,
    "hidden_size": 256,
    "num_heads": 4,
    "intermediate_size": 704,
    "out_hidden_size": 512,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "image_size": 56,
    "hidden_act": "silu",
}
DEEPSEEK = {
    **text("deepseek_v3", without=("head_dim",)),
    "num_key_value_heads": 8,
    "q_lora_rank": None,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 256,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "routed_scaling_factor": 1.0,
    "scoring_func": "sigmoid",
    "topk_method": "noaux_tc",
    "norm_topk_prob": True,
}
LLAVA = {"projector_hidden_act": "gelu", "image_token_index": 32}
GRIDS = {"image_grid_pinpoints": [[56, 112]]}
MROPE = {"type": "mrope", "mrope_section": [16, 8, 8]}
FLAT_QWEN = {"tie_word_embeddings": False, "num_hidden_layers": 2, "rope_scaling": MROPE}
WINDOWS = {"sliding_window": 256, "layer_types": ["sliding_attention", "full_attention"]}

TOWERS = {
    "qwen2-vl": small("Qwen2VLForConditionalGeneration", "qwen2_vl", vision_config=QWEN2_VISION, **FLAT_QWEN),
    "qwen2.5-vl": small("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", vision_config=QWEN_VISION, **FLAT_QWEN),
    "qwen3-vl": seeing(
        "Qwen3VLForConditionalGeneration",
        "qwen3_vl",
        text("qwen3_vl_text", rope_scaling={"rope_type": "default", "mrope_section": [16, 8, 8]}),
        QWEN3_VISION,
    ),
    "gemma3": seeing(
        "Gemma3ForConditionalGeneration",
        "gemma3",
        text("gemma3_text", query_pre_attn_scalar=64, hidden_activation="gelu_pytorch_tanh", **WINDOWS),
        SIGLIP,
        tie_word_embeddings=True,
        mm_tokens_per_image=4,
    ),
    "gemma4": seeing(
        "Gemma4ForConditionalGeneration",
        "gemma4",
        text(
            "gemma4_text",
            hidden_activation="gelu_pytorch_tanh",
            hidden_size_per_layer_input=0,
            global_head_dim=128,
            **WINDOWS,
        ),
        {**GEMMA4_VISION, "standardize": True},
        tie_word_embeddings=True,
    ),
    "gemma4 with bounds": seeing(
        "Gemma4ForConditionalGeneration",
        "gemma4",
        text(
            "gemma4_text",
            hidden_activation="gelu_pytorch_tanh",
            hidden_size_per_layer_input=0,
            global_head_dim=128,
            **WINDOWS,
        ),
        {**GEMMA4_VISION, "use_clipped_linears": True},
        tie_word_embeddings=True,
    ),
    "mistral3": seeing(
        "Mistral3ForConditionalGeneration",
        "mistral3",
        text("mistral", sliding_window=None),
        PIXTRAL,
        spatial_merge_size=2,
        vision_feature_layer=-1,
    ),
    "mistral3, first layer's features, biased projector": seeing(
        "Mistral3ForConditionalGeneration",
        "mistral3",
        text("ministral3", sliding_window=None),
        PIXTRAL,
        spatial_merge_size=2,
        vision_feature_layer=-2,
        multimodal_projector_bias=True,
    ),
    "llama4": seeing(
        "Llama4ForConditionalGeneration",
        "llama4",
        text(
            "llama4_text",
            intermediate_size_mlp=1216,
            num_local_experts=4,
            num_experts_per_tok=1,
            attention_chunk_size=256,
            interleave_moe_layer_step=1,
        ),
        LLAMA4_VISION,
    ),
    "kimi k2.5": seeing("KimiK25ForConditionalGeneration", "kimi_k25", DEEPSEEK, KIMI_VISION),
    "kimi k2.5 with k3's tower": seeing("KimiK25ForConditionalGeneration", "kimi_k25", DEEPSEEK, K3_VISION),
    "kimi k2.5 with heads that do not divide": seeing(
        "KimiK25ForConditionalGeneration", "kimi_k25", DEEPSEEK, {**K3_VISION, "num_attention_heads": 3}
    ),
    "gemma4 that hears": seeing(
        "Gemma4ForConditionalGeneration",
        "gemma4",
        text(
            "gemma4_text",
            hidden_activation="gelu_pytorch_tanh",
            hidden_size_per_layer_input=0,
            global_head_dim=128,
            **WINDOWS,
        ),
        GEMMA4_VISION,
        audio_config={"model_type": "gemma4_audio", "hidden_size": 256, "num_hidden_layers": 2},
        tie_word_embeddings=True,
    ),
    "kimi-vl": seeing("KimiVLForConditionalGeneration", "kimi_vl", DEEPSEEK, MOONVIT, media_placeholder_token_id=32),
    "glm-4v": seeing(
        "Glm4vForConditionalGeneration",
        "glm4v",
        text(
            "glm4v_text",
            attention_bias=True,
            partial_rotary_factor=1.0,
            rope_scaling={"type": "default", "mrope_section": [8, 12, 12]},
        ),
        GLM_VISION,
    ),
    "internvl": seeing(
        "InternVLForConditionalGeneration",
        "internvl",
        text("qwen2"),
        {
            **SIGLIP,
            "model_type": "internvl_vision",
            "image_size": [56, 56],
            "patch_size": [14, 14],
            "attention_bias": True,
            "use_qk_norm": True,
        },
        downsample_ratio=0.5,
    ),
    "llava": seeing("LlavaForConditionalGeneration", "llava", text("llama"), CLIP, vision_feature_layer=-2, **LLAVA),
    "llava with pixtral": seeing(
        "LlavaForConditionalGeneration",
        "llava",
        text("mistral", sliding_window=None),
        PIXTRAL,
        vision_feature_layer=-1,
        **LLAVA,
    ),
    "llava-next": seeing(
        "LlavaNextForConditionalGeneration",
        "llava_next",
        text("mistral", sliding_window=None),
        CLIP,
        vision_feature_layer=-2,
        **LLAVA,
        **GRIDS,
    ),
    "llava-onevision": seeing(
        "LlavaOnevisionForConditionalGeneration",
        "llava_onevision",
        text("qwen2"),
        SIGLIP,
        vision_feature_layer=-1,
        video_token_index=33,
        **LLAVA,
        **GRIDS,
    ),
    "paligemma": seeing(
        "PaliGemmaForConditionalGeneration",
        "paligemma",
        text("gemma", hidden_activation="gelu_pytorch_tanh"),
        {**SIGLIP, "projection_dim": 512},
        projection_dim=512,
        hidden_size=512,
        image_token_index=32,
        tie_word_embeddings=True,
    ),
    "idefics3": seeing(
        "Idefics3ForConditionalGeneration",
        "idefics3",
        text("llama"),
        {**SIGLIP, "model_type": "idefics3_vision"},
        scale_factor=2,
        image_token_id=32,
    ),
    "phi-3-vision": small(
        "Phi3VForCausalLM",
        "phi3_v",
        num_hidden_layers=2,
        sliding_window=None,
        img_processor={"name": "clip_vision_model", "image_dim_out": 1024, "num_img_tokens": 144},
        embd_layer={
            "embedding_cls": "image",
            "hd_transform_order": "sub_glb",
            "projection_cls": "mlp",
            "use_hd_transform": True,
            "with_learnable_separator": True,
        },
    ),
    "whisper": {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "d_model": 512,
        "encoder_layers": 3,
        "decoder_layers": 2,
        "encoder_attention_heads": 8,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 1216,
        "decoder_ffn_dim": 2048,
        "vocab_size": 1000,
        "num_mel_bins": 80,
        "max_source_positions": 1500,
        "max_target_positions": 448,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 3,
        "is_encoder_decoder": True,
        "torch_dtype": "float16",
    },
}
