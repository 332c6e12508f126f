"""Data types of the KV cache smaller than the model's own: what they take, and which releases and devices read them."""

from collections.abc import Callable
from dataclasses import dataclass

from planner.core.engine import Version
from planner.core.hardware import Gpu

SCALE_BYTES_PER_HEAD_AND_TOKEN = 8
NVFP4_GROUP = 16
FLASHINFER_HEAD_SIZES = frozenset({64, 128, 256, 512})


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheDtype:
    """A `--kv-cache-dtype`; `bytes_per_head` takes head_dim and returns the key and value bytes of one token.

    `least_capability` is the compute capability that some kernel of vLLM needs; below `any_backend_from` only
    FlashInfer serves it, for heads of 64, 128, 256 and 512.
    """

    name: str
    bits: int
    since: Version
    bytes_per_head: Callable[[int], int]
    least_capability: tuple[int, int] | None
    any_backend_from: tuple[int, int] | None
    on_cpu: bool
    backend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheDtypeSupport:
    """Whether a release reads a cache of this type on a device, and why or how."""

    name: str
    bits: int
    since: Version
    bytes_per_head: int
    supported: bool
    why: str


def _fp8(head_dim: int) -> int:
    return 2 * head_dim


def _with_scales(bits: int) -> Callable[[int], int]:
    """Two float32 scales a head and token, one for the key and one for the value, lie beside the values."""
    return lambda head_dim: 2 * head_dim * bits // 8 + SCALE_BYTES_PER_HEAD_AND_TOKEN


def _nvfp4(head_dim: int) -> int:
    """Four bits a value, and one byte of scale for every sixteen."""
    return 2 * (head_dim // 2 + head_dim // NVFP4_GROUP)


CACHE_DTYPES = (
    CacheDtype(
        name="fp8",
        bits=8,
        since=Version(0, 6, 6),
        bytes_per_head=_fp8,
        least_capability=(8, 0),
        any_backend_from=(8, 9),
        on_cpu=True,
        backend="FlashAttention on Hopper and data-centre Blackwell, FlashInfer or Triton elsewhere",
    ),
    CacheDtype(
        name="int8_per_token_head",
        bits=8,
        since=Version(0, 20),
        bytes_per_head=_with_scales(8),
        least_capability=(8, 0),
        any_backend_from=None,
        on_cpu=False,
        backend="the Triton backend only",
    ),
    CacheDtype(
        name="fp8_per_token_head",
        bits=8,
        since=Version(0, 20),
        bytes_per_head=_with_scales(8),
        least_capability=(8, 9),
        any_backend_from=None,
        on_cpu=False,
        backend="the Triton backend only",
    ),
    CacheDtype(
        name="int4_per_token_head",
        bits=4,
        since=Version(0, 25),
        bytes_per_head=_with_scales(4),
        least_capability=(8, 0),
        any_backend_from=None,
        on_cpu=False,
        backend="the Triton backend only",
    ),
    CacheDtype(
        name="nvfp4",
        bits=4,
        since=Version(0, 20),
        bytes_per_head=_nvfp4,
        least_capability=(8, 0),
        any_backend_from=None,
        on_cpu=False,
        backend="FlashInfer, made for data-centre Blackwell",
    ),
)


def cache_dtype_support(version: Version, gpu: Gpu, head_dim: int) -> tuple[CacheDtypeSupport, ...]:
    """Return every small cache type with whether this release reads it on this device, and why.

    Source: vLLM `config.cache.CacheDType`, `v1.kv_cache_interface.AttentionSpec`, and what each attention backend of
    `v1.attention.backends` accepts.
    """
    return tuple(_support(kind, version, gpu, head_dim) for kind in CACHE_DTYPES)


def _support(kind: CacheDtype, version: Version, gpu: Gpu, head_dim: int) -> CacheDtypeSupport:
    obstacle = _obstacle(kind, version, gpu, head_dim)
    return CacheDtypeSupport(
        name=kind.name,
        bits=kind.bits,
        since=kind.since,
        bytes_per_head=kind.bytes_per_head(head_dim),
        supported=not obstacle,
        why=obstacle or _how(kind, gpu),
    )


def _obstacle(kind: CacheDtype, version: Version, gpu: Gpu, head_dim: int) -> str:
    if version < kind.since:
        return f"vLLM has it from {kind.since} on"
    if gpu.is_cpu:
        return "" if kind.on_cpu else "no kernel on the CPU platform"
    if kind.least_capability is not None and gpu.below(*kind.least_capability):
        return f"needs compute capability {kind.least_capability[0]}.{kind.least_capability[1]}"
    if _only_flashinfer(kind, gpu) and head_dim not in FLASHINFER_HEAD_SIZES:
        return f"only FlashInfer would read it here, and it has no kernel for heads of {head_dim}"
    return ""


def _only_flashinfer(kind: CacheDtype, gpu: Gpu) -> bool:
    return kind.any_backend_from is not None and gpu.below(*kind.any_backend_from)


def _how(kind: CacheDtype, gpu: Gpu) -> str:
    if gpu.is_cpu:
        return "read by the CPU backend"
    if _only_flashinfer(kind, gpu):
        return "needs FlashInfer installed; the values are widened before they are multiplied"
    return f"read by {kind.backend}"
