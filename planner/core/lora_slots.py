"""Room for LoRA adapters that vLLM keeps ready on the GPU."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSlots:
    """`max_loras` adapters of `max_lora_rank`; `target_modules` limits which layers take part (None: all of them).

    `fully_sharded` splits the half of each adapter that every rank otherwise holds whole.
    """

    max_loras: int = 1
    max_lora_rank: int = 16
    dtype: str = "bfloat16"
    fully_sharded: bool = False
    target_modules: tuple[str, ...] | None = None
