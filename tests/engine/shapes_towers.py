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
    "vt_hidden_size": 1152,
    "vt_intermediate_size": 4304,
    "vt_num_attention_heads": 16,
    "vt_num_hidden_layers": 27,
}
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
