"""The memory that vLLM finds free when it starts: what was said, or what is usual on such a device, with its range.

vLLM takes its share of the GPU's total, and stops when that much is not free; it does not make room for others.
"""

from dataclasses import dataclass
from enum import StrEnum

from planner.core.engine import EngineFacts, Version
from planner.core.hardware import Gpu
from planner.core.layout import Layout
from planner.core.situation import UNIFIED_MEMORY_CAPABILITIES
from planner.core.slack import held_before_start_bytes
from planner.core.units import GIB, in_gib

READS_WHAT_THE_HOST_CAN_GIVE = Version(0, 12)
SCREENS = ("rtx 30", "rtx 40", "rtx 50", "rtx 2", "geforce", "rtx a", "quadro", "workstation")
DESKTOP_BYTES = int(0.9 * GIB)
HELD_BY_OTHERS_BYTES = GIB // 2
SYSTEM_BYTES = (int(5.5 * GIB), int(7.2 * GIB), int(20.4 * GIB))
UNREAD_PAGE_CACHE_SHARE = 0.3


class Sharing(StrEnum):
    """Who else has memory of the device: nobody, a screen perhaps, the whole system, or it is the host's RAM."""

    ALONE = "alone"
    SLICE = "slice"
    SCREEN = "screen"
    SYSTEM = "system"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeMemory:
    """Bytes free at start, low and high; `given` when somebody measured them, then all three are the same."""

    low_bytes: int
    bytes: int
    high_bytes: int
    sharing: Sharing
    given: bool
    sentence: str

    def others_bytes(self, total_bytes: int, own_bytes: int) -> int:
        """Return what others hold beside vLLM's own context."""
        return max(0, total_bytes - own_bytes - self.bytes)


def sharing_of(gpu: Gpu) -> Sharing:
    """Return who else has memory of a device, as far as its kind tells."""
    if gpu.is_cpu:
        return Sharing.HOST
    if gpu.compute_capability in UNIFIED_MEMORY_CAPABILITIES:
        return Sharing.SYSTEM
    name = gpu.name.lower()
    if " mig " in name:
        return Sharing.SLICE
    return Sharing.SCREEN if any(part in name for part in SCREENS) else Sharing.ALONE


def free_memory(gpu: Gpu, layout: Layout, facts: EngineFacts, free_bytes: int | None) -> FreeMemory:
    """Return what is free at start.

    Without a figure the GPU is taken to be otherwise empty: its total less vLLM's own context (and NCCL's). On GB10
    101.3 to 114.5 of 121.69 GiB were free in public reports (MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks issue 47);
    under WSL 14.55 of 15.92 GiB (vLLM issue 30707).
    """
    sharing = sharing_of(gpu)
    if free_bytes is not None:
        sentence = f"{in_gib(free_bytes)} of {in_gib(gpu.total_bytes)} were said to be free at start."
        return _same(free_bytes, sharing, sentence, given=True)
    if sharing is Sharing.HOST:
        return _same(gpu.total_bytes, sharing, "all of the host's memory is taken to be free.")
    if sharing is Sharing.SYSTEM:
        return _of_the_system(gpu, facts)
    free = gpu.total_bytes - held_before_start_bytes(layout)
    if sharing is Sharing.SCREEN:
        sentence = (
            "no other process is taken to be on the GPU; a desktop or WSL holds "
            f"about {in_gib(DESKTOP_BYTES)} of it: say what nvidia-smi shows free."
        )
        return FreeMemory(
            low_bytes=free - DESKTOP_BYTES,
            bytes=free,
            high_bytes=free,
            sharing=sharing,
            given=False,
            sentence=sentence,
        )
    whose = "the slice" if sharing is Sharing.SLICE else "the GPU"
    return _same(free, sharing, f"no other process is taken to be on {whose}.")


def _same(free: int, sharing: Sharing, sentence: str, *, given: bool = False) -> FreeMemory:
    return FreeMemory(low_bytes=free, bytes=free, high_bytes=free, sharing=sharing, given=given, sentence=sentence)


def _of_the_system(gpu: Gpu, facts: EngineFacts) -> FreeMemory:
    """GPU and system share the memory: what the host could give counts, its page cache too, but only since 0.12."""
    least, usual, most = SYSTEM_BYTES
    reads = facts.version >= READS_WHAT_THE_HOST_CAN_GIVE
    cached = 0 if reads else int(UNREAD_PAGE_CACHE_SHARE * gpu.total_bytes)
    what = "page cache counts as free" if reads else "page cache counts as used in this release: drop it first"
    return FreeMemory(
        low_bytes=max(0, gpu.total_bytes - most - cached),
        bytes=gpu.total_bytes - usual,
        high_bytes=gpu.total_bytes - least,
        sharing=Sharing.SYSTEM,
        given=False,
        sentence=f"the system shares this memory and holds 6 to 20 GiB of it; {what}.",
    )
