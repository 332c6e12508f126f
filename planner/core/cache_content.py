"""What one head and token take in the cache, by kv_cache_dtype: the element, and the content where it is packed."""

from planner.core.errors import Unknown
from planner.core.units import ELEMENT_BYTES, cdiv, round_up

SCALE_BYTES = 4
NVFP4_GROUP = 16
ULTRAQUANT_GROUP = 32
PLAIN = frozenset({"auto", "float16", "bfloat16", "float32"})
FLOAT8 = frozenset({"fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"})
PER_TOKEN_HEAD_BITS = {"int8_per_token_head": 8, "fp8_per_token_head": 8, "int4_per_token_head": 4}
NVFP4 = frozenset({"nvfp4", "nvfp4_4over6"})
TURBOQUANT_BITS = {
    "turboquant_k8v4": (8, 4),
    "turboquant_4bit_nc": (4, 4),
    "turboquant_k3v4_nc": (3, 4),
    "turboquant_3bit_nc": (3, 3),
}
LATENT_BYTES = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
COMPRESSED_FP8_BYTES = 584
"""Of one compressed state of DeepSeek V4: 448 numbers in 8 bits, 64 rotary ones in 16, 8 bytes of scales."""


def is_plain(kv_cache_dtype: str) -> bool:
    """Whether the cache keeps the model's own kind of numbers (vLLM: not `is_quantized_kv_cache`)."""
    return kv_cache_dtype in PLAIN


def is_boundary_kept(kv_cache_dtype: str) -> bool:
    """Whether the first and last layers of a dense model keep the model's dtype (vLLM `get_boundary_skip_layers`)."""
    return kv_cache_dtype in TURBOQUANT_BITS or kv_cache_dtype == "ultraquant_4bit"


def element_dtype(kv_cache_dtype: str, model_dtype: str) -> str:
    """Return torch's name of the cached elements (vLLM `kv_cache_dtype_str_to_dtype`); raises Unknown."""
    if kv_cache_dtype == "auto":
        return model_dtype
    if kv_cache_dtype in PLAIN:
        return kv_cache_dtype
    if kv_cache_dtype == "int8_per_token_head":
        return "int8"
    if kv_cache_dtype == "fp8_inc":
        return "float8_e4m3fn"
    known = FLOAT8 | NVFP4 | PER_TOKEN_HEAD_BITS.keys() | TURBOQUANT_BITS.keys() | LATENT_BYTES.keys()
    if kv_cache_dtype not in known and kv_cache_dtype != "ultraquant_4bit":
        raise unplanned(kv_cache_dtype)
    return "uint8"


def quant_mode(kv_cache_dtype: str) -> str:
    """Return vLLM's `KVQuantMode` of a cache, "" for none."""
    if is_plain(kv_cache_dtype):
        return ""
    if kv_cache_dtype in FLOAT8 or kv_cache_dtype == "fp8_ds_mla":
        return "FP8_PER_TENSOR"
    return "NVFP4" if kv_cache_dtype in NVFP4 else kv_cache_dtype.upper()


def unplanned(kv_cache_dtype: str) -> Unknown:
    """Return the error for a cache whose bytes are not known here."""
    return Unknown(
        field="kv_cache_dtype",
        message=f"{kv_cache_dtype!r} is not planned yet.",
        fix="plan with auto, fp8, nvfp4, or one of the per_token_head types",
    )


def head_content_bytes(kv_cache_dtype: str, head_dim: int, value_head_dim: int) -> int | None:
    """Return the bytes of one head and token where keys and values are packed; None where they lie as they are.

    nvfp4 keeps keys and values in slots of their own: half of these bytes each.
    Source: vLLM 0.28 on `AttentionBackend.customize_spec`; before that `v1.kv_cache_interface` in its page sizes.
    """
    if bits := PER_TOKEN_HEAD_BITS.get(kv_cache_dtype):
        return head_dim * bits // 8 + value_head_dim * bits // 8 + 2 * SCALE_BYTES
    if kv_cache_dtype in NVFP4:
        return 2 * (head_dim // 2 + head_dim // NVFP4_GROUP)
    if kv_cache_dtype in TURBOQUANT_BITS:
        return _turboquant_bytes(*TURBOQUANT_BITS[kv_cache_dtype], head_dim)
    if kv_cache_dtype == "ultraquant_4bit":
        return head_dim + 2 * (head_dim // ULTRAQUANT_GROUP)
    return None


def _turboquant_bytes(key_bits: int, value_bits: int, head_dim: int) -> int:
    """8-bit keys have no norm beside them; values have a scale and a zero of 16 bits each (vLLM `TurboQuantConfig`)."""
    key = head_dim if key_bits == 8 else cdiv(head_dim * key_bits, 8) + 2
    return round_up(key + cdiv(head_dim * value_bits, 8) + 4, 2)


PACKED_BY = {
    "TRITON_ATTN": PER_TOKEN_HEAD_BITS.keys(),
    "FLASHINFER": NVFP4,
    "TURBOQUANT": TURBOQUANT_BITS.keys(),
}


def packed_by(backend: str, kv_cache_dtype: str) -> bool:
    """Whether a backend keeps keys and values of this dtype packed (vLLM `customize_spec`)."""
    return kv_cache_dtype in PACKED_BY.get(backend, ())


def head_bytes(
    head_dim: int, value_head_dim: int, kv_cache_dtype: str, model_dtype: str, *, packed: bool = True
) -> int:
    """Return what one head and token take in the cache."""
    content = head_content_bytes(kv_cache_dtype, head_dim, value_head_dim) if packed else None
    if content is not None:
        return content
    return (head_dim + value_head_dim) * ELEMENT_BYTES[element_dtype(kv_cache_dtype, model_dtype)]


def latent_dtype(backend: str, kv_cache_dtype: str) -> str:
    """Return the format a latent is stored in: sparse kernels pack what others store as it is.

    Source: vLLM `layers.attention.mla_attention._canonicalize_sparse_mla_kv_cache_dtype` (0.18 on).
    """
    if backend == "FLASHMLA_SPARSE" and kv_cache_dtype.startswith("fp8"):
        return "fp8_ds_mla"
    if backend == "FLASHINFER_MLA_SPARSE_SM120" and kv_cache_dtype in {"auto", "fp8", "fp8_e4m3"}:
        return "fp8_ds_mla"
    return kv_cache_dtype
