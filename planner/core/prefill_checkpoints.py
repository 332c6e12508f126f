"""States exported inside a prompt's prefill: a block more for each request, where the kernels can (0.29 on)."""

from planner.core.cache_layer import StateCache
from planner.core.cache_setting import CacheSetting
from planner.core.page_alignment import exports_gdn_checkpoints

FLASH_KDA = frozenset({9, 10, 12})
FLASH_KDA_HEAD = 128
BOUNDED_GATES = "KimiK3"


def keeps_checkpoints(setting: CacheSetting, cache: StateCache) -> bool:
    """Return whether a recurrent layer keeps a checkpoint beside its states (vLLM `num_prefill_checkpoint_blocks`)."""
    if cache.kind == "gdn":
        return setting.mamba_cache_mode == "align" and exports_gdn_checkpoints(setting)
    if cache.kind not in setting.facts.states_with_checkpoints:
        return False
    return cache.kind != "kda" or _runs_flash_kda(setting, cache)


def _runs_flash_kda(setting: CacheSetting, cache: StateCache) -> bool:
    """FlashKDA wants bf16, heads of 128 and a bounded gate (vLLM `models.kimi_k3.nvidia.kda.is_flashkda_supported`)."""
    capability = setting.gpu.compute_capability
    served = capability is not None and capability[0] in FLASH_KDA and cache.head_dim == FLASH_KDA_HEAD
    return served and setting.dtype == "bfloat16" and setting.model.architecture.startswith(BOUNDED_GATES)
