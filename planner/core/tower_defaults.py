"""What the configuration classes of towers assume for keys that a config.json leaves out.

Only the keys that decide shapes. Source: the configuration classes of transformers 5.19 and of vLLM 0.32.
"""

from collections.abc import Mapping
from types import MappingProxyType

_QWEN3_VISION: Mapping[str, object] = {
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_heads": 16,
    "in_channels": 3,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 3584,
    "num_position_embeddings": 2304,
}
_QWEN3_DEEPSTACK: Mapping[str, object] = {**_QWEN3_VISION, "deepstack_visual_indexes": (8, 16, 24)}

TOWER_DEFAULTS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "qwen2_vl_vision": {
            "depth": 32,
            "embed_dim": 1280,
            "hidden_size": 3584,
            "mlp_ratio": 4,
            "num_heads": 16,
            "in_channels": 3,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
        },
        "qwen2_5_vl_vision": {
            "depth": 32,
            "hidden_size": 3584,
            "intermediate_size": 3420,
            "num_heads": 16,
            "in_channels": 3,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "out_hidden_size": 3584,
        },
        "qwen3_vl_vision": _QWEN3_DEEPSTACK,
        "qwen3_5_vision": _QWEN3_VISION,
        "siglip_vision_model": {
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "num_channels": 3,
            "image_size": 224,
            "patch_size": 16,
        },
        "clip_vision_model": {
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "num_channels": 3,
            "image_size": 224,
            "patch_size": 32,
        },
        "pixtral": {
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "num_channels": 3,
            "image_size": 1024,
            "patch_size": 16,
        },
        "kimi_k25_vision": {
            "hidden_size": 1152,
            "intermediate_size": 4304,
            "num_attention_heads": 16,
            "num_hidden_layers": 27,
            "patch_size": 14,
            "pos_emb_height": 64,
            "pos_emb_width": 64,
            "pos_emb_time": 4,
            "merge_kernel_size": (2, 2),
            "patch_embed_proj_bias": True,
            "attn_bias": True,
            "linear_bias": True,
        },
        "kimi_k3_vision": {
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_attention_heads": 12,
            "num_hidden_layers": 27,
            "patch_size": 14,
            "pos_emb_height": 64,
            "pos_emb_width": 64,
            "pos_emb_time": 4,
            "merge_kernel_size": (2, 2),
            "qkv_hidden_size": 1536,
            "norm_type": "rmsnorm",
            "mm_projector_type": "patchmergerv2",
        },
        "llama4_vision_model": {
            "hidden_size": 768,
            "intermediate_size": 5632,
            "num_hidden_layers": 34,
            "num_attention_heads": 16,
            "num_channels": 3,
            "vision_output_dim": 7680,
            "image_size": 448,
            "patch_size": 14,
            "projector_input_dim": 4096,
            "projector_output_dim": 4096,
            "pixel_shuffle_ratio": 0.5,
        },
    }
)
