"""What vLLM's CPU build lacks for a model that is only built: kernels that no weight depends on."""

from contextlib import suppress
from typing import Any


def install() -> None:
    """Let every model be built on a machine without a GPU; a question that runs a kernel still fails."""
    _experts_without_a_gate()
    _scratch_of_triton()


def _experts_without_a_gate() -> None:
    """Only GPUs have kernels for them; what is created is the same whichever kernel is chosen."""
    from vllm.model_executor.layers.fused_moe import config, unquantized_fused_moe_method
    from vllm.model_executor.layers.fused_moe.oracle.unquantized import UnquantizedMoeBackend

    checked, chosen = config.FusedMoEConfig.__post_init__, unquantized_fused_moe_method.select_unquantized_moe_backend

    def check(self: Any) -> None:
        with suppress(NotImplementedError):
            checked(self)

    def choose(*args: Any, **kwargs: Any) -> Any:
        try:
            return chosen(*args, **kwargs)
        except NotImplementedError:
            return UnquantizedMoeBackend.TRITON, None

    config.FusedMoEConfig.__post_init__ = check
    unquantized_fused_moe_method.select_unquantized_moe_backend = choose


def _scratch_of_triton() -> None:
    """Triton's kernels get their scratch memory from an allocator, which there is none of without it."""
    import vllm.triton_utils
    from vllm.triton_utils import allocation

    allocation.set_triton_allocator = vllm.triton_utils.set_triton_allocator = lambda *_: None
