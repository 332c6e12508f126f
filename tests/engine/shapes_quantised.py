"""Small models in every way to quantise that vLLM 0.32 loads: (model, quantization_config, places).

Widths are such that blocks of 128 and the kernels' tiles fit at TP 1 to 8. The forms of the quantisation configs are
those of published checkpoints (Qwen, DeepSeek, Meta, NVIDIA, Red Hat, Intel, AMD, OpenAI).
"""

from tests.engine.shapes import small

DENSE = small(
    "LlamaForCausalLM",
    "llama",
    hidden_size=2048,
    intermediate_size=4096,
    num_attention_heads=16,
    num_key_value_heads=8,
    head_dim=128,
)
TIED = {**DENSE, "tie_word_embeddings": True}
EXPERTS = small(
    "Qwen3MoeForCausalLM",
    "qwen3_moe",
    hidden_size=2048,
    intermediate_size=2048,
    num_attention_heads=16,
    num_key_value_heads=8,
    head_dim=128,
    num_experts=10,
    num_experts_per_tok=2,
    moe_intermediate_size=1024,
    decoder_sparse_step=1,
    mlp_only_layers=[0],
    norm_topk_prob=True,
)
LATENT = small(
    "DeepseekV3ForCausalLM",
    "deepseek_v3",
    hidden_size=2048,
    intermediate_size=4096,
    num_attention_heads=16,
    num_key_value_heads=16,
    kv_lora_rank=512,
    q_lora_rank=1536,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    n_routed_experts=16,
    n_shared_experts=1,
    num_experts_per_tok=4,
    n_group=4,
    topk_group=2,
    moe_intermediate_size=1024,
    first_k_dense_replace=1,
    moe_layer_freq=1,
    norm_topk_prob=True,
    scoring_func="sigmoid",
    topk_method="noaux_tc",
    routed_scaling_factor=2.5,
)
GPT_OSS = small(
    "GptOssForCausalLM",
    "gpt_oss",
    hidden_size=2880,
    intermediate_size=2880,
    num_attention_heads=64,
    num_key_value_heads=8,
    head_dim=64,
    num_local_experts=8,
    num_experts_per_tok=4,
    sliding_window=128,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    hidden_act="silu",
    swiglu_limit=7.0,
    attention_bias=True,
    without=("rope_theta",),
    rope_parameters={"rope_type": "default", "rope_theta": 150000.0},
)
MODELS = {"dense": DENSE, "tied": TIED, "experts": EXPERTS, "latent": LATENT, "gpt-oss": GPT_OSS}


def args(bits, kind="float", strategy="channel", *, symmetric=True, dynamic=False, **more):
    """The arguments of one tensor in a compressed-tensors group."""
    stated = {"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": symmetric, "dynamic": dynamic}
    return {**stated, **more}


def compressed(form, weights, inputs=None, *, ignore=("lm_head",), targets=("Linear",), **more):
    """A compressed-tensors config of one group."""
    group = {"weights": weights, "input_activations": inputs, "output_activations": None, "targets": list(targets)}
    head = {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed"}
    return {**head, "config_groups": {"group_0": group}, "ignore": list(ignore), **more}


def modelopt(algorithm, *, ignore=("lm_head",), **more):
    """A ModelOpt config as newer exports put it into config.json."""
    return {"quant_method": "modelopt", "quant_algo": algorithm, "ignore": list(ignore), **more}


TOKEN = args(8, strategy="token", dynamic=True)
STATIC = args(8, strategy="tensor")
FP8_KV = {"kv_cache_scheme": {"type": "float", "num_bits": 8, "dynamic": False}}
FP4 = args(4, strategy="tensor_group", group_size=16)
FP4_IN = args(4, strategy="tensor_group", group_size=16, dynamic="local")
BLOCK = {"weight_block_size": [128, 128]}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3"}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}
ROUND = {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True, "data_type": "int"}
NVFP4_LAYERS = {
    f"model.layers.{layer}.mlp.{name}": {"quant_algo": "NVFP4", "group_size": 16}
    for layer in range(3)
    for name in ("gate_proj", "up_proj", "down_proj")
}
FP8_LAYERS = {f"model.layers.0.self_attn.{name}_proj": {"quant_algo": "FP8"} for name in "qkvo"}
MIXED_LAYERS = {
    **{f"model.layers.{layer}.mlp.experts.0.up_proj": {"quant_algo": "W4A16_NVFP4"} for layer in (1, 2)},
    **{f"model.layers.0.mlp.{name}_proj": {"quant_algo": "W4A16_NVFP4"} for name in ("gate", "up", "down")},
    **FP8_LAYERS,
}
EXTRA = {
    "model.layers.0.mlp.down_proj": {"bits": 16, "data_type": "float"},
    "model.layers.1.self_attn.o_proj": {"bits": 8, "group_size": 32},
    ".*layers.2.self_attn.(q|k|v)_proj": {"bits": 8},
}
IGNORED = [f"model.layers.1.self_attn.{name}_proj" for name in "qkv"] + ["model.layers.0.mlp.down_proj", "lm_head"]
TENSOR_WEIGHT = {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "is_dynamic": False}
QUARK = {
    "quant_method": "quark",
    "export": {"kv_cache_group": [], "pack_method": "reorder", "weight_format": "real_quantized"},
    "exclude": ["lm_head", "model.layers.0.self_attn.o_proj"],
    "layer_quant_config": {},
    "layer_type_quant_config": {},
    "global_quant_config": {"weight": TENSOR_WEIGHT, "input_tensors": TENSOR_WEIGHT, "output_tensors": None},
}
EVERY = ("dense", "experts", "latent")
CASES = {
    "fp8, a scale a tensor": (EVERY, FP8),
    "fp8, static inputs": (("dense", "experts"), {**FP8, "activation_scheme": "static"}),
    "fp8, blocks": (EVERY, {**FP8, **BLOCK}),
    "fp8, blocks, some left alone": (("dense",), {**FP8, **BLOCK, "modules_to_not_convert": IGNORED}),
    "fp8, experts left alone": (("experts",), {**FP8, "ignored_layers": ["model.layers.1.mlp.experts.0.gate_proj"]}),
    "fbgemm": (
        ("dense",),
        {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": IGNORED},
    ),
    "awq": (("dense", "experts"), AWQ),
    "awq, some left alone": (("dense",), {**AWQ, "modules_to_not_convert": ["layers.1.mlp", "o_proj"]}),
    "awq, groups of 64": (("dense",), {**AWQ, "group_size": 64}),
    "gptq": (("dense", "experts"), GPTQ),
    "gptq, 8 bits, all inputs in a group": (("dense",), {**GPTQ, "bits": 8, "group_size": -1}),
    "gptq, with its head": (("dense",), {**GPTQ, "lm_head": True}),
    "gptq, by module": (
        ("dense",),
        {**GPTQ, "dynamic": {r"-:.*\.layers\.0\..*": {}, r"+:.*down_proj": {"bits": 8, "group_size": 64}}},
    ),
    "gptq, only some": (
        ("dense",),
        {**GPTQ, "modules_in_block_to_quantize": [["mlp.gate_proj", "mlp.up_proj"], ["mlp.down_proj"]]},
    ),
    "auto-round": (("dense",), {**ROUND, "packing_format": "auto_round:auto_gptq"}),
    "auto-round as awq": (("dense",), {**ROUND, "packing_format": "auto_round:auto_awq"}),
    "auto-round by layer": (("dense",), {**ROUND, "packing_format": "auto_round:auto_gptq", "extra_config": EXTRA}),
    "compressed fp8, channels": (EVERY, compressed("float-quantized", args(8), TOKEN)),
    "compressed fp8, tensors, static": (("dense", "experts"), compressed("float-quantized", STATIC, STATIC)),
    "compressed fp8, blocks": (
        ("dense", "experts"),
        compressed(
            "float-quantized",
            args(8, strategy="block", block_structure=[128, 128]),
            args(8, strategy="group", group_size=128, dynamic=True),
        ),
    ),
    "compressed fp8, some by pattern": (
        ("dense",),
        compressed(
            "float-quantized", args(8), TOKEN, ignore=("lm_head", "re:.*self_attn.*", "model.layers.2.mlp.down_proj")
        ),
    ),
    "compressed fp8, named targets": (
        ("dense",),
        compressed("float-quantized", args(8), TOKEN, targets=("re:.*mlp.*_proj", "model.layers.0.self_attn.o_proj")),
    ),
    "compressed fp8 with fp8 KV": (
        ("dense",),
        compressed("float-quantized", args(8), TOKEN, kv_cache_scheme=STATIC),
    ),
    "compressed int8, channels": (
        ("dense", "experts"),
        compressed("int-quantized", args(8, "int"), args(8, "int", "token", dynamic=True)),
    ),
    "compressed int8, static, shifted": (
        ("dense",),
        compressed("int-quantized", args(8, "int"), args(8, "int", "tensor", symmetric=False)),
    ),
    "compressed int4": (
        ("dense", "experts"),
        compressed("pack-quantized", args(4, "int", "group", group_size=128)),
    ),
    "compressed int4, shifted": (
        ("dense",),
        compressed("pack-quantized", args(4, "int", "group", symmetric=False, group_size=128)),
    ),
    "compressed int8, weights only": (("dense",), compressed("pack-quantized", args(8, "int"))),
    "compressed nvfp4": (("dense", "experts"), compressed("nvfp4-pack-quantized", FP4, FP4_IN)),
    "compressed nvfp4, weights only": (("dense", "experts"), compressed("nvfp4-pack-quantized", FP4)),
    "compressed mxfp4": (
        ("dense", "experts"),
        compressed("mxfp4-pack-quantized", args(4, strategy="group", group_size=32, scale_dtype="torch.uint8")),
    ),
    "modelopt fp8": (EVERY, modelopt("FP8")),
    "modelopt fp8 with fp8 KV": (("dense",), modelopt("FP8", **FP8_KV)),
    "modelopt fp8, channels": (("dense",), modelopt("FP8_PER_CHANNEL_PER_TOKEN")),
    "modelopt fp8, blocks": (("dense",), modelopt("FP8_PB_WO")),
    "modelopt nvfp4": (EVERY, modelopt("NVFP4", group_size=16)),
    "modelopt nvfp4, some left alone": (
        ("experts",),
        modelopt("NVFP4", ignore=("lm_head", "model.layers.0*", "*self_attn*", "model.layers.1.mlp.gate")),
    ),
    "modelopt nvfp4 in a file of its own": (
        ("dense",),
        {
            "quant_method": "modelopt",
            "quantization": {
                "quant_algo": "NVFP4",
                "kv_cache_quant_algo": "FP8",
                "group_size": 16,
                "exclude_modules": ["lm_head", "model.layers.1.self_attn*"],
            },
        },
    ),
    "modelopt mxfp8": (("dense", "experts"), modelopt("MXFP8", kv_cache_quant_algo=None)),
    "modelopt by layer": (("dense",), modelopt("MIXED_PRECISION", quantized_layers={**NVFP4_LAYERS, **FP8_LAYERS})),
    "modelopt by layer, experts": (
        ("experts",),
        modelopt("MIXED_PRECISION", quantized_layers=MIXED_LAYERS, **FP8_KV),
    ),
    "mxfp4": (
        ("gpt-oss",),
        {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]},
    ),
    "quark fp8": (("dense",), QUARK),
    "tied, fp8": (("tied",), {**FP8, **BLOCK}),
}
