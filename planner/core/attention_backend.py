"""Which attention backend serves a layer: vLLM's order of preference, and the first that does not object."""

from collections.abc import Callable
from dataclasses import dataclass

from planner.core.attention_need import AttentionDevice, AttentionNeed
from planner.core.engine import Version


@dataclass(frozen=True, slots=True)
class KernelBlock:
    """A block size that a kernel takes: exactly this many tokens, or any multiple (vLLM `MultipleOf`)."""

    tokens: int
    multiples: bool = False

    def most_within(self, tokens: int) -> int:
        """Return the largest block of this kind up to a number of tokens; the least there is when none fits."""
        return max(self.tokens, tokens // self.tokens * self.tokens) if self.multiples else self.tokens


def multiples_of(tokens: int) -> tuple[KernelBlock, ...]:
    """Return the one entry of a kernel that takes any multiple."""
    return (KernelBlock(tokens, multiples=True),)


def exactly(*tokens: int) -> tuple[KernelBlock, ...]:
    """Return the entries of a kernel that takes these sizes only (larger blocks are then split for it)."""
    return tuple(KernelBlock(size) for size in tokens)


Objection = Callable[[AttentionNeed, AttentionDevice], str]
KernelBlocks = Callable[[AttentionNeed, AttentionDevice], tuple[KernelBlock, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One attention backend: why it does not serve a layer ("": it does), and the blocks its kernels take.

    Source: vLLM `AttentionBackend`.
    """

    name: str
    objection: Objection
    kernel_blocks: KernelBlocks

    def takes_block(self, tokens: int, need: AttentionNeed, device: AttentionDevice) -> bool:
        """Whether a block of this many tokens serves the layer, whole or split (vLLM `supports_block_size`)."""
        return any(tokens % block.tokens == 0 for block in self.kernel_blocks(need, device))


def refused(backend: Backend, need: AttentionNeed, device: AttentionDevice) -> str:
    """Return why a backend does not serve a layer, the block size asked for included; "" when it does."""
    reason = backend.objection(need, device)
    if not reason and need.block_size is not None and not backend.takes_block(need.block_size, need, device):
        return f"it has no kernel for blocks of {need.block_size} tokens"
    return reason


def first_that_serves(preferences: tuple[Backend, ...], need: AttentionNeed, device: AttentionDevice) -> Backend | None:
    """Return the backend vLLM takes by itself; None: it finds none and refuses to start."""
    return next((backend for backend in preferences if not refused(backend, need, device)), None)


def since(version: Version, first: tuple[int, int], later: frozenset[str]) -> frozenset[str]:
    """Return names that are known from a release on, else none."""
    return later if version >= Version(*first) else frozenset()
