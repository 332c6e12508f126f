"""vLLM's attention backends for keys and values a head: what each objects to, and their order on NVIDIA GPUs."""

from dataclasses import replace

from planner.core.attention_backend import Backend, KernelBlock, Objection, exactly, multiples_of, since
from planner.core.attention_need import HALVES, AttentionDevice, AttentionNeed
from planner.core.engine import Version

FLOAT8 = frozenset({"fp8", "fp8_e4m3"})
WITH_SCALES = frozenset({"int8_per_token_head", "fp8_per_token_head"})
ANY_FLOAT = HALVES | {"float32"}
COMPOSITE_HEADS = frozenset({256, 512})


def plain_names(device: AttentionDevice) -> frozenset[str]:
    """Return the names of an unquantised cache that backends of a release know."""
    version = device.version
    bfloat = since(version, (0, 15), frozenset({"bfloat16"}))
    return frozenset({"auto"}) | bfloat | since(version, (0, 18), frozenset({"float16"}))


def _dtype(need: AttentionNeed, known: frozenset[str]) -> str:
    return "" if need.dtype in known else f"it does not compute in {need.dtype}"


def _cache(need: AttentionNeed, known: frozenset[str]) -> str:
    return "" if need.kv_cache_dtype in known else f"it does not read a {need.kv_cache_dtype} cache"


def _flash_attention(need: AttentionNeed, device: AttentionDevice) -> str:
    checks = (
        _dtype(need, HALVES),
        "" if device.capability >= (8, 0) else "it needs compute capability 8.0",
        "" if _flash_attention_heads(need.head_dim, device) else f"it has no kernel for heads of {need.head_dim}",
        "" if need.plain_cache else _flash_attention_float8(need, device),
        "" if not need.sinks or _flash_attention_sinks(device) else "it has no attention sinks here",
        _flash_attention_images(need, device) if need.sees_images_whole else "",
    )
    return next((reason for reason in checks if reason), "")


def _flash_attention_heads(head_dim: int, device: AttentionDevice) -> bool:
    if device.version < Version(0, 12):
        return head_dim in {32, 64, 96, 128, 160, 192, 224, 256}
    wider = device.version >= Version(0, 20) and device.has_flash_attention_4
    return head_dim % 8 == 0 and head_dim <= (512 if wider else 256)


def _flash_attention_float8(need: AttentionNeed, device: AttentionDevice) -> str:
    if need.kv_cache_dtype in FLOAT8:
        if device.version < Version(0, 27):
            return "" if device.is_family(9) else "only FlashAttention 3 reads an fp8 cache"
        version = device.flash_attention(need)
        hopper = version == 3 or (version == 4 and need.head_dim == 512 and device.version >= Version(0, 31))
        if (device.is_family(9) and hopper) or (device.is_family(10) and version == 4):
            images_on_hopper = need.sees_images_whole and device.is_family(9) and device.version >= Version(0, 31)
            return "it does not read an fp8 cache where images attend both ways" if images_on_hopper else ""
    return f"it does not read a {need.kv_cache_dtype} cache here"


def _flash_attention_sinks(device: AttentionDevice) -> bool:
    if device.version < Version(0, 20):
        return device.is_family(9)
    return device.capability >= (9, 0) and device.flash_attention() in {3, 4}


def _flash_attention_images(need: AttentionNeed, device: AttentionDevice) -> str:
    served = device.version >= Version(0, 24) and device.has_flash_attention_4 and device.flash_attention(need) == 4
    return "" if served else "it cannot let image tokens attend both ways"


def _flash_attention_blocks(need: AttentionNeed, device: AttentionDevice) -> tuple[KernelBlock, ...]:
    float8 = need.kv_cache_dtype in FLOAT8
    if float8 and need.head_dim == 512 and device.is_family(9) and device.version >= Version(0, 31):
        return exactly(64)
    return exactly(128) if device.has_pages_of_128(need) else multiples_of(16)


def _flashinfer(need: AttentionNeed, device: AttentionDevice) -> str:
    heads = {64, 128, 256, 512} if device.version >= Version(0, 22) else {64, 128, 256}
    least = (8, 0) if device.version >= Version(0, 24) else (7, 5)
    checks = (
        _dtype(need, HALVES),
        "" if least <= device.capability <= (12, 1) else "it has no kernels for this device",
        "" if need.head_dim in heads else f"it has no kernel for heads of {need.head_dim}",
        _flashinfer_cache(need, device),
        "" if not need.sinks or _flashinfer_sinks(device) else "it has no attention sinks here",
        "it cannot let image tokens attend both ways" if need.sees_images_whole else "",
        "it attends only within the decoder" if need.cross else "",
    )
    return next((reason for reason in checks if reason), "")


def _flashinfer_cache(need: AttentionNeed, device: AttentionDevice) -> str:
    if not need.kv_cache_dtype.startswith("nvfp4"):
        return _cache(need, plain_names(device) | FLOAT8 | {"fp8_e5m2"})
    version = device.version
    if version >= Version(0, 32) and device.is_family(8, 9, 12):
        odd = need.kv_cache_dtype != "nvfp4" or need.head_dim == 64 or need.sinks
        return "it reads nvfp4 here only in its plain form, heads other than 64, no sinks" if odd else ""
    known = since(version, (0, 21), frozenset({"nvfp4"})) | since(version, (0, 28), frozenset({"nvfp4_4over6"}))
    here = version < Version(0, 25) or device.is_family(10)
    return _cache(need, known) or ("" if here else "it reads an nvfp4 cache on data-centre Blackwell only")


def _flashinfer_sinks(device: AttentionDevice) -> bool:
    if device.is_family(12):
        return device.version >= Version(0, 28)
    if device.capability == (9, 0):
        return device.version >= Version(0, 30)
    return device.is_family(10)


def _flashinfer_blocks(need: AttentionNeed, device: AttentionDevice) -> tuple[KernelBlock, ...]:
    grouped = need.num_heads // need.kv_heads > 1
    if grouped and device.is_family(10) and device.version >= Version(0, 24):
        return exactly(16, 32, 64, 128, 256, 512, 1024)
    return exactly(16, 32, 64)


def _triton(need: AttentionNeed, device: AttentionDevice) -> str:
    version = device.version
    known = plain_names(device) | FLOAT8 | {"fp8_e5m2"} | since(version, (0, 20), WITH_SCALES)
    known |= since(version, (0, 25), frozenset({"int4_per_token_head"}))
    images = need.sees_images_whole and version < Version(0, 13)
    return (
        _dtype(need, ANY_FLOAT)
        or _cache(need, known)
        or ("" if need.head_dim >= 32 else "it needs heads of at least 32")
        or ("it cannot let image tokens attend both ways" if images else "")
    )


def _flex(need: AttentionNeed, device: AttentionDevice) -> str:
    images = need.sees_images_whole and device.version < Version(0, 13)
    return (
        _dtype(need, ANY_FLOAT)
        or _cache(need, plain_names(device))
        or ("it has no attention sinks" if need.sinks else "")
        or ("it cannot let image tokens attend both ways" if images else "")
        or ("it attends only within the decoder" if need.cross else "")
    )


def _turboquant(need: AttentionNeed, device: AttentionDevice) -> str:
    known = device.version >= Version(0, 20) and need.kv_cache_dtype.startswith("turboquant_")
    odd = need.sinks or need.sees_images_whole or need.cross
    return "" if known and not odd else f"it does not read a {need.kv_cache_dtype} cache"


def _both(causal: Objection) -> Objection:
    """Two backends share one cache: Triton where images attend both ways, the other for everything causal."""

    def objection(need: AttentionNeed, device: AttentionDevice) -> str:
        if need.head_dim not in COMPOSITE_HEADS or need.context_parallel:
            return "its two kernels do not serve this layer together"
        return _triton(need, device) or causal(replace(need, sees_images_whole=False), device)

    return objection


FLASH_ATTN = Backend(name="FLASH_ATTN", objection=_flash_attention, kernel_blocks=_flash_attention_blocks)
FLASHINFER = Backend(name="FLASHINFER", objection=_flashinfer, kernel_blocks=_flashinfer_blocks)
TRITON_ATTN = Backend(name="TRITON_ATTN", objection=_triton, kernel_blocks=lambda need, device: multiples_of(16))
FLEX_ATTENTION = Backend(name="FLEX_ATTENTION", objection=_flex, kernel_blocks=lambda need, device: multiples_of(16))
TURBOQUANT = Backend(
    name="TURBOQUANT", objection=_turboquant, kernel_blocks=lambda need, device: exactly(16, 32, 64, 128)
)
TRITON_FLASHINFER = Backend(
    name="TRITON_FLASHINFER", objection=_both(_flashinfer), kernel_blocks=lambda need, device: exactly(64)
)
TRITON_FLASH_ATTN = Backend(
    name="TRITON_FLASH_ATTN", objection=_both(_flash_attention), kernel_blocks=_flash_attention_blocks
)
BACKENDS = (FLASH_ATTN, FLASHINFER, TRITON_ATTN, FLEX_ATTENTION, TURBOQUANT, TRITON_FLASHINFER, TRITON_FLASH_ATTN)


def head_preferences(need: AttentionNeed, device: AttentionDevice) -> tuple[Backend, ...]:
    """Return the backends vLLM tries for a layer with keys and values a head, the first choice first.

    Source: vLLM `platforms.cuda._get_backend_priorities`.
    """
    both = need.sees_images_whole and device.version >= Version(0, 30)
    if device.is_family(10):
        first = (TRITON_FLASHINFER,) if both else ()
        return (*first, FLASHINFER, FLASH_ATTN, TRITON_ATTN, FLEX_ATTENTION, TURBOQUANT)
    first = (TRITON_FLASH_ATTN,) if both and device.is_family(9) else ()
    return (*first, FLASH_ATTN, FLASHINFER, TRITON_ATTN, FLEX_ATTENTION, TURBOQUANT)
