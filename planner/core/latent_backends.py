"""vLLM's attention backends for a latent (MLA), dense and sparse: their objections, and their order on NVIDIA GPUs."""

from collections.abc import Callable
from dataclasses import dataclass

from planner.core.attention_backend import Backend, KernelBlock, exactly, multiples_of, since
from planner.core.attention_need import HALVES, AttentionDevice, AttentionNeed
from planner.core.engine import Version
from planner.core.head_backends import FLOAT8, plain_names

LATENT_AND_ROPE = 576
SM120_CACHES = frozenset({"auto", *FLOAT8, "fp8_ds_mla"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traits:
    """What most of these backends differ in: devices, caches, heads, dtypes."""

    majors: frozenset[int] | None
    caches: Callable[[AttentionDevice], frozenset[str]]
    heads: Callable[[AttentionDevice], frozenset[int] | None]
    sparse: bool = False
    dtypes: frozenset[str] = HALVES
    further: Callable[[AttentionNeed, AttentionDevice], str] = lambda need, device: ""

    def objection(self, need: AttentionNeed, device: AttentionDevice) -> str:
        """Return the first thing that does not suit ("": all does)."""
        heads = self.heads(device)
        checks = (
            "" if self.sparse == need.sparse else f"it is for {'sparse' if self.sparse else 'dense'} attention",
            "" if self.majors is None or device.is_family(*self.majors) else "it has no kernels for this device",
            "" if need.kv_cache_dtype in self.caches(device) else f"it does not read a {need.kv_cache_dtype} cache",
            "" if heads is None or need.head_dim in heads else f"it has no kernel for latents of {need.head_dim}",
            "" if need.dtype in self.dtypes else f"it does not compute in {need.dtype}",
            self.further(need, device),
        )
        return next((reason for reason in checks if reason), "")


def _common_latents(device: AttentionDevice) -> frozenset[int]:
    if device.version < Version(0, 18):
        return frozenset({LATENT_AND_ROPE})
    return frozenset({320, LATENT_AND_ROPE} if device.version < Version(0, 30) else {320, 512, LATENT_AND_ROPE})


def _any_latent(device: AttentionDevice) -> frozenset[int] | None:
    return None if device.version >= Version(0, 18) else frozenset({LATENT_AND_ROPE})


def _with_float8(device: AttentionDevice) -> frozenset[str]:
    return plain_names(device) | FLOAT8


def _triton_caches(device: AttentionDevice) -> frozenset[str]:
    return _with_float8(device) if device.version >= Version(0, 18) else plain_names(device)


def _flashinfer_nope(need: AttentionNeed, device: AttentionDevice) -> str:
    version = device.version
    if version < Version(0, 15):
        return ""
    sizes = {128} if version < Version(0, 18) else {64, 128} if version < Version(0, 19) else {64, 128, 192}
    return "" if need.nope_head_dim in sizes else f"it has no kernel for nope heads of {need.nope_head_dim}"


def _flashinfer_sparse(need: AttentionNeed, device: AttentionDevice) -> str:
    if need.rope_head_dim == 0 and device.version >= Version(0, 30):
        return "" if need.nope_head_dim == 256 else f"it has no kernel for nope heads of {need.nope_head_dim}"
    sizes = {128, 192} if device.version >= Version(0, 19) else {128}
    return "" if need.nope_head_dim in sizes else f"it has no kernel for nope heads of {need.nope_head_dim}"


def _flashinfer_sparse_caches(device: AttentionDevice) -> frozenset[str]:
    return _with_float8(device) if device.version >= Version(0, 18) else frozenset({"auto", "bfloat16"})


def _flashmla_sparse_caches(device: AttentionDevice) -> frozenset[str]:
    known = frozenset({"auto", "fp8_ds_mla"}) | since(device.version, (0, 15), frozenset({"bfloat16"}))
    known |= since(device.version, (0, 18), frozenset({"fp8"}))
    return known | since(device.version, (0, 30), frozenset({"nvfp4_ds_mla"}))


def _flashmla_sparse(need: AttentionNeed, device: AttentionDevice) -> str:
    if need.kv_cache_dtype == "nvfp4_ds_mla" and not device.is_family(10):
        return "it reads an nvfp4_ds_mla cache on data-centre Blackwell only"
    if need.head_dim == 512 and not (device.is_family(9) and need.rope_head_dim == 0):
        return "it serves latents of 512 on Hopper only, without rotary part"
    return ""


def _flashmla_sparse_latents(device: AttentionDevice) -> frozenset[int]:
    without_rope = device.version >= Version(0, 31)
    return frozenset({LATENT_AND_ROPE, 512}) if without_rope else frozenset({LATENT_AND_ROPE})


def _sparse_blocks(since_any: tuple[int, int], *sizes: int) -> Callable[..., tuple[KernelBlock, ...]]:
    """From a release on any multiple of the least size, before that these only."""

    def blocks(need: AttentionNeed, device: AttentionDevice) -> tuple[KernelBlock, ...]:
        return multiples_of(min(sizes)) if device.version >= Version(*since_any) else exactly(*sizes)

    return blocks


def _flashmla_sparse_blocks(need: AttentionNeed, device: AttentionDevice) -> tuple[KernelBlock, ...]:
    packed_on_blackwell = not need.plain_cache and device.is_family(10)
    return exactly(64) if device.version < Version(0, 32) or packed_on_blackwell else multiples_of(64)


def _no_context_parallel(need: AttentionNeed, device: AttentionDevice) -> str:
    return "it does not serve decode context parallelism" if need.context_parallel else ""


def _backend(name: str, traits: _Traits, blocks: Callable[..., tuple[KernelBlock, ...]]) -> Backend:
    return Backend(name=name, objection=traits.objection, kernel_blocks=blocks)


def _sized(*sizes: int) -> Callable[..., tuple[KernelBlock, ...]]:
    return lambda need, device: exactly(*sizes)


FLASH_ATTN_MLA = _backend(
    "FLASH_ATTN_MLA",
    _Traits(majors=frozenset({9}), caches=plain_names, heads=_common_latents),
    lambda need, device: multiples_of(16),
)
FLASHMLA = _backend("FLASHMLA", _Traits(majors=frozenset({9}), caches=_with_float8, heads=_common_latents), _sized(64))
FLASHINFER_MLA = _backend(
    "FLASHINFER_MLA",
    _Traits(majors=frozenset({10}), caches=_with_float8, heads=_common_latents, further=_flashinfer_nope),
    _sized(32, 64),
)
CUTLASS_MLA = _backend(
    "CUTLASS_MLA", _Traits(majors=frozenset({10}), caches=_with_float8, heads=_common_latents), _sized(128)
)
TRITON_MLA = _backend(
    "TRITON_MLA",
    _Traits(majors=None, caches=_triton_caches, heads=_any_latent),
    lambda need, device: multiples_of(16),
)
FLASHMLA_SPARSE = _backend(
    "FLASHMLA_SPARSE",
    _Traits(
        majors=frozenset({9, 10}),
        caches=_flashmla_sparse_caches,
        heads=_flashmla_sparse_latents,
        sparse=True,
        dtypes=frozenset({"bfloat16"}),
        further=_flashmla_sparse,
    ),
    _flashmla_sparse_blocks,
)
FLASHINFER_MLA_SPARSE = _backend(
    "FLASHINFER_MLA_SPARSE",
    _Traits(
        majors=frozenset({10}),
        caches=_flashinfer_sparse_caches,
        heads=lambda device: (
            frozenset({512, LATENT_AND_ROPE}) if device.version >= Version(0, 30) else frozenset({LATENT_AND_ROPE})
        ),
        sparse=True,
        further=_flashinfer_sparse,
    ),
    _sparse_blocks((0, 32), 32, 64),
)
FLASHINFER_MLA_SPARSE_SM120 = _backend(
    "FLASHINFER_MLA_SPARSE_SM120",
    _Traits(
        majors=frozenset({12}),
        caches=lambda device: SM120_CACHES,
        heads=_flashmla_sparse_latents,
        sparse=True,
        dtypes=frozenset({"bfloat16"}),
    ),
    _sparse_blocks((0, 32), 64, 256),
)
FLASHINFER_MLA_SPARSE_SM90 = _backend(
    "FLASHINFER_MLA_SPARSE_SM90",
    _Traits(
        majors=frozenset({9}),
        caches=lambda device: frozenset({"auto", "bfloat16", *FLOAT8}),
        heads=lambda device: frozenset({512, LATENT_AND_ROPE}),
        sparse=True,
        dtypes=frozenset({"bfloat16"}),
    ),
    lambda need, device: multiples_of(64),
)
FLASH_ATTN_MLA_SPARSE = _backend(
    "FLASH_ATTN_MLA_SPARSE",
    _Traits(
        majors=frozenset({9}), caches=plain_names, heads=lambda device: None, sparse=True, further=_no_context_parallel
    ),
    _sparse_blocks((0, 32), 64),
)
BACKENDS = (
    FLASH_ATTN_MLA,
    FLASHMLA,
    FLASHINFER_MLA,
    CUTLASS_MLA,
    TRITON_MLA,
    FLASHMLA_SPARSE,
    FLASHINFER_MLA_SPARSE,
    FLASHINFER_MLA_SPARSE_SM120,
    FLASHINFER_MLA_SPARSE_SM90,
    FLASH_ATTN_MLA_SPARSE,
)


def latent_preferences(need: AttentionNeed, device: AttentionDevice) -> tuple[Backend, ...]:
    """Return the backends vLLM tries for a latent layer, the first choice first.

    Source: vLLM `platforms.cuda._get_backend_priorities`.
    """
    version = device.version
    if device.is_family(10):
        first = (CUTLASS_MLA, FLASHINFER_MLA) if version < Version(0, 15) else (FLASHINFER_MLA, CUTLASS_MLA)
        return (*first, TRITON_MLA, *_sparse_on_blackwell(need, version))
    if device.is_family(12) and version >= Version(0, 24):
        return (TRITON_MLA, FLASHINFER_MLA_SPARSE_SM120)
    return (FLASH_ATTN_MLA, FLASHMLA, TRITON_MLA, *_sparse_elsewhere(need, version))


def _sparse_on_blackwell(need: AttentionNeed, version: Version) -> tuple[Backend, ...]:
    if version < Version(0, 17):
        return (FLASHMLA_SPARSE,)
    flashinfer_first = need.num_heads <= 16 or (version >= Version(0, 19) and not need.plain_cache)
    pair = (FLASHMLA_SPARSE, FLASHINFER_MLA_SPARSE)
    return pair[::-1] if flashinfer_first else pair


def _sparse_elsewhere(need: AttentionNeed, version: Version) -> tuple[Backend, ...]:
    if version < Version(0, 25):
        return (FLASHMLA_SPARSE,)
    pair = (FLASH_ATTN_MLA_SPARSE, FLASHMLA_SPARSE)
    if version < Version(0, 30):
        return pair
    return (FLASHINFER_MLA_SPARSE_SM90, *pair) if need.head_dim == 512 else (*pair, FLASHINFER_MLA_SPARSE_SM90)
