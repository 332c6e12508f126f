"""One row an architecture that is planned; what has no row is unknown.

Each row was compared with the parameters that vLLM 0.32 creates (`tests/engine`). A fact is a constant, or the
config.json keys that decide it, joined by `|` when any of them does.
"""

from collections.abc import Mapping
from types import MappingProxyType

from planner.core.family import Family, KvHeads, Norms, Positions, QkNorm

_GPT2_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "intermediate_size": "n_inner",
    "max_position_embeddings": "n_positions",
}
_PHI_NAMES = {**_GPT2_NAMES, "num_key_value_heads": "n_head_kv"}
_BLOOM_NAMES = {
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "seq_length",
}
_EXAONE_NAMES = {"num_hidden_layers": "num_layers"}
_CHATGLM_NAMES = {
    "num_hidden_layers": "num_layers",
    "intermediate_size": "ffn_hidden_size",
    "num_key_value_heads": "multi_query_group_num",
    "vocab_size": "padded_vocab_size",
    "max_position_embeddings": "seq_length",
}
_LLAMA_BIAS = "attention_bias|bias"


def _llama(model_type: str = "llama", *, first: str = "") -> Family:
    return Family(model_type=model_type, qkv_bias=_LLAMA_BIAS, o_bias=_LLAMA_BIAS, mlp_bias="mlp_bias", first=first)


_CHATGLM = Family(
    model_type="chatglm",
    names=_CHATGLM_NAMES,
    qkv_bias="add_bias_linear|add_qkv_bias",
    o_bias="add_bias_linear",
    mlp_bias="add_bias_linear",
    kv_heads=KvHeads.CHATGLM,
    free_head_dim=False,
    rotary_factor=0.5,
    both_ends_everywhere=True,
)

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "LlamaForCausalLM": _llama(),
        "LLaMAForCausalLM": _llama(),
        "InternLM3ForCausalLM": Family(
            model_type="internlm3", qkv_bias="qkv_bias", o_bias=_LLAMA_BIAS, mlp_bias="mlp_bias"
        ),
        "IQuestCoderForCausalLM": _llama("iquestcoder", first="0.14"),
        "TeleChat3ForCausalLM": _llama("telechat3", first="0.20"),
        "MistralForCausalLM": _llama("mistral"),
        "Ministral3ForCausalLM": _llama("ministral3", first="0.20"),
        "Qwen2ForCausalLM": Family(
            model_type="qwen2",
            qkv_bias=True,
            qk_norm=QkNorm.HEAD,
            qk_norm_if="qk_norm",
            free_head_dim=False,
            window_flag="use_sliding_window",
        ),
        "Qwen3ForCausalLM": Family(
            model_type="qwen3", qkv_bias="attention_bias", qk_norm=QkNorm.HEAD, window_flag="use_sliding_window"
        ),
        "MiMoForCausalLM": Family(
            model_type="mimo", qkv_bias=True, free_head_dim=False, window_flag="use_sliding_window", first="0.9"
        ),
        "OPTForCausalLM": Family(
            model_type="opt",
            names={"intermediate_size": "ffn_dim"},
            gated_mlp=False,
            qkv_bias="enable_bias",
            o_bias="enable_bias",
            mlp_bias="enable_bias",
            norm_vectors=2,
            norm_affine="layer_norm_elementwise_affine",
            kv_heads=KvHeads.MULTI_HEAD,
            free_head_dim=False,
            positions=Positions.LEARNED,
            position_offset=2,
            projected_embedding=True,
            both_ends_everywhere=True,
        ),
        "GPT2LMHeadModel": Family(
            model_type="gpt2",
            names=_GPT2_NAMES,
            gated_mlp=False,
            qkv_bias=True,
            o_bias=True,
            mlp_bias=True,
            norm_vectors=2,
            kv_heads=KvHeads.MULTI_HEAD,
            free_head_dim=False,
            positions=Positions.LEARNED,
            both_ends_everywhere=True,
            unplanned_if=("add_cross_attention",),
        ),
        "GPTJForCausalLM": Family(
            model_type="gptj",
            names=_GPT2_NAMES,
            gated_mlp=False,
            mlp_bias=True,
            norms_per_layer=1,
            norm_vectors=2,
            kv_heads=KvHeads.MULTI_HEAD,
            free_head_dim=False,
            head_bias=True,
            both_ends_everywhere=True,
            unplanned_if=("tie_word_embeddings",),
        ),
        "GPTBigCodeForCausalLM": Family(
            model_type="gpt_bigcode",
            names=_GPT2_NAMES,
            gated_mlp=False,
            qkv_bias=True,
            o_bias=True,
            mlp_bias=True,
            norm_vectors=2,
            kv_heads=KvHeads.BIGCODE,
            free_head_dim=False,
            positions=Positions.LEARNED,
            mask_buffer=True,
            mlp_whole_in_transformers=True,
            both_ends_everywhere=True,
            transformers_since="0.25",
        ),
        "GPTNeoXForCausalLM": Family(
            model_type="gpt_neox",
            gated_mlp=False,
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            mlp_bias=True,
            norm_vectors=2,
            kv_heads=KvHeads.MULTI_HEAD,
            free_head_dim=False,
            both_ends_everywhere=True,
            transformers_since="0.32",
        ),
        "BloomForCausalLM": Family(
            model_type="bloom",
            names=_BLOOM_NAMES,
            gated_mlp=False,
            qkv_bias=True,
            o_bias=True,
            mlp_bias=True,
            norm_vectors=2,
            kv_heads=KvHeads.MULTI_HEAD,
            free_head_dim=False,
            positions=Positions.ALIBI,
            embedding_norm=True,
            both_ends_everywhere=True,
        ),
        "FalconForCausalLM": Family(
            model_type="falcon",
            names={"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "num_kv_heads": "n_head_kv"},
            gated_mlp=False,
            qkv_bias="bias",
            o_bias="bias",
            mlp_bias="bias",
            norms=Norms.FALCON,
            norm_vectors=2,
            kv_heads=KvHeads.FALCON,
            free_head_dim=False,
            alibi_if="alibi",
            both_ends_everywhere=True,
        ),
        "GemmaForCausalLM": Family(model_type="gemma", model_scalar_buffers=1, both_ends_everywhere=True),
        "PhiForCausalLM": Family(
            model_type="phi",
            names=_PHI_NAMES,
            gated_mlp=False,
            qkv_bias=True,
            o_bias=True,
            mlp_bias=True,
            norms_per_layer=1,
            norm_vectors=2,
            qk_norm=QkNorm.HEAD_AND_BIAS,
            qk_norm_if="qk_layernorm",
            free_head_dim=False,
            head_bias=True,
            head_bias_in_transformers=False,
            both_ends_everywhere=True,
            transformers_since="0.32",
        ),
        "Phi3ForCausalLM": Family(model_type="phi3", free_head_dim=True),
        "GraniteForCausalLM": Family(
            model_type="granite", qkv_bias="attention_bias", o_bias="attention_bias", mlp_bias="mlp_bias"
        ),
        "OlmoForCausalLM": Family(
            model_type="olmo",
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            norm_vectors=0,
            free_head_dim=False,
            both_ends_everywhere=True,
            transformers_since="0.26",
        ),
        "Olmo2ForCausalLM": Family(
            model_type="olmo2",
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            qk_norm=QkNorm.ALL_HEADS,
            free_head_dim=False,
            both_ends_everywhere=True,
            transformers_since="0.26",
        ),
        "StableLmForCausalLM": Family(
            model_type="stablelm",
            qkv_bias="use_qkv_bias",
            norm_vectors=2,
            free_head_dim=False,
            both_ends_everywhere=True,
            unplanned_if=("qk_layernorm",),
        ),
        "Starcoder2ForCausalLM": Family(
            model_type="starcoder2",
            gated_mlp=False,
            qkv_bias="use_bias",
            o_bias="use_bias",
            mlp_bias="use_bias",
            norm_vectors=2,
            both_ends_everywhere=True,
            transformers_since="0.25",
        ),
        "CohereForCausalLM": Family(
            model_type="cohere",
            norms_per_layer=1,
            qk_norm=QkNorm.EACH_HEAD,
            qk_norm_if="use_qk_norm",
            both_ends_everywhere=True,
        ),
        "InternLM2ForCausalLM": Family(model_type="internlm2", free_head_dim=False, both_ends_everywhere=True),
        "ChatGLMModel": _CHATGLM,
        "ChatGLMForConditionalGeneration": _CHATGLM,
        "GlmForCausalLM": Family(model_type="glm", qkv_bias="attention_bias", transformers_since="0.32"),
        "Glm4ForCausalLM": Family(model_type="glm4", qkv_bias="attention_bias", norms_per_layer=4),
        "ExaoneForCausalLM": Family(
            model_type="exaone",
            names=_EXAONE_NAMES,
            qkv_bias="attention_bias|bias",
            o_bias="attention_bias|bias",
            mlp_bias="mlp_bias",
        ),
        "Exaone4ForCausalLM": Family(
            model_type="exaone4",
            qkv_bias="attention_bias|bias",
            o_bias="attention_bias|bias",
            mlp_bias="mlp_bias",
            qk_norm=QkNorm.HEAD,
            first="0.10",
        ),
        "NemotronForCausalLM": Family(
            model_type="nemotron",
            gated_mlp=False,
            qkv_bias="attention_bias|bias",
            o_bias="attention_bias|bias",
            mlp_bias="mlp_bias",
            norm_vectors=2,
        ),
        "SeedOssForCausalLM": Family(
            model_type="seed_oss",
            qkv_bias="attention_bias",
            o_bias="attention_out_bias",
            mlp_bias="mlp_bias",
            transformers_since="0.32",
            first="0.10.2",
        ),
        "SmolLM3ForCausalLM": Family(
            model_type="smollm3",
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            mlp_bias="mlp_bias",
            window_flag="use_sliding_window",
            transformers_since="0.10.1",
            first="0.10.1",
        ),
        "ArceeForCausalLM": Family(
            model_type="arcee",
            gated_mlp=False,
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            mlp_bias="mlp_bias",
            transformers_since="0.32",
            first="0.10",
        ),
        "SolarForCausalLM": Family(
            model_type="solar", qkv_bias="attention_bias|bias", o_bias="attention_bias|bias", mlp_bias="mlp_bias"
        ),
        "ApertusForCausalLM": Family(
            model_type="apertus",
            gated_mlp=False,
            qkv_bias="attention_bias|bias",
            o_bias="attention_bias|bias",
            mlp_bias="mlp_bias",
            qk_norm=QkNorm.HEAD,
            layer_scalars=2,
            layer_scalar_buffers=2,
            first="0.10.2",
        ),
        "Ernie4_5ForCausalLM": Family(
            model_type="ernie4_5", qkv_bias=_LLAMA_BIAS, mlp_bias="mlp_bias", first="0.10.1", unplanned_if=("use_bias",)
        ),
        "HyperCLOVAXForCausalLM": Family(
            model_type="hyperclovax",
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            mlp_bias="mlp_bias",
            norms=Norms.POST_NORM,
            first="0.18",
        ),
        "OrionForCausalLM": Family(model_type="orion", norm_vectors=2, free_head_dim=False, both_ends_everywhere=True),
        "MiniCPMForCausalLM": Family(model_type="minicpm", free_head_dim=False, both_ends_everywhere=True),
        "TeleFLMForCausalLM": _llama("TeleFLM"),
        "HunYuanDenseV1ForCausalLM": Family(
            model_type="hunyuan_v1_dense",
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            qk_norm=QkNorm.HEAD,
            transformers_since="0.29",
            first="0.10",
        ),
        "Jais2ForCausalLM": Family(
            model_type="jais2",
            gated_mlp=False,
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            mlp_bias="mlp_bias",
            norm_vectors=2,
            transformers_since="0.32",
            first="0.13",
        ),
    }
)

MODEL_TYPES: Mapping[str, str] = MappingProxyType(
    {row.model_type: architecture for architecture, row in reversed(list(FAMILIES.items()))}
)
