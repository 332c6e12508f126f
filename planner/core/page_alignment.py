"""Pages of one size in one pool: attention's block is raised until its page holds a state, the rest is padded to it."""

from dataclasses import dataclass, replace
from math import lcm

from planner.core.attention_choice import LayerBackend
from planner.core.block_size import DEFAULT_BLOCK, attention_block
from planner.core.cache_content import head_bytes, packed_by
from planner.core.cache_layer import StateCache
from planner.core.cache_setting import CacheSetting
from planner.core.errors import Refusal, Unknown
from planner.core.units import cdiv, round_up

LATENT_STEP = 128
CHUNK_WITHOUT_A_KEY = 2048
GDN_CHECKPOINT_STEP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan:
    """Block sizes in tokens, page sizes in bytes; a page of None is not padded.

    `attention` is the block of full attention (vLLM's `cache_config.block_size`), `state` that of recurrent layers.
    """

    attention: int
    state: int
    state_page_bytes: int | None = None
    skipped_page_bytes: int | None = None


def block_plan(setting: CacheSetting) -> BlockPlan:
    """Return the block sizes that a boot ends up with, whatever was asked.

    Raises BadInput where no backend serves the model, Unknown where a release's rule needs what isn't known here.
    Source: vLLM `Platform._align_hybrid_block_size` (0.20 on), `HybridAttentionMambaModelConfig` (0.10 to 0.19),
    `Platform._align_heterogeneous_kv_block_size` (0.25 on).
    """
    block = attention_block(setting)
    plan = BlockPlan(attention=block, state=_state_block(setting, block))
    if setting.model.traits.hybrid:
        plan = _holding_a_state(setting, plan)
    plan = _holding_skipped_layers(setting, plan) if _pads_skipped(setting) else plan
    if plan.attention != block and setting.facts.hybrid_block_suits_every_backend:
        check_every_backend(setting.attention_backends(), plan.attention)
    return plan


def check_every_backend(backends: tuple[LayerBackend, ...], block: int) -> None:
    """vLLM `Platform._check_aligned_block_size`, since 0.32: a raised block that some layers' kernels do not take."""
    unserved = next((each for each in backends if not each.takes_block(block)), None)
    if unserved is None:
        return
    raise Refusal(
        "block_align_backend",
        field="attention_backend",
        message=f"the block is raised to {block} tokens, which {unserved.backend.name} does not take.",
        fix="choose another attention backend or block size",
    )


def _state_block(setting: CacheSetting, attention: int) -> int:
    """A state holds a whole request, unless states are kept at the ends of blocks."""
    if setting.mamba_cache_mode == "none":
        return setting.asked.mamba_block_size or setting.max_model_len
    return setting.asked.mamba_block_size or attention


def _holding_a_state(setting: CacheSetting, plan: BlockPlan) -> BlockPlan:
    state_bytes = max(
        (setting.state(cache).content_bytes for cache in setting.distinct_caches() if isinstance(cache, StateCache)),
        default=0,
    )
    if not state_bytes:
        return plan
    backends = setting.attention_backends()
    token_bytes = _bytes_per_token(setting, backends[0])
    step = _step(setting, backends, plan.attention)
    if setting.mamba_cache_mode == "all":
        step = lcm(setting.asked.mamba_block_size or _chunk_size(setting), step)
        raised = round_up(cdiv(state_bytes, token_bytes), step)
    else:
        raised = _for_every_backend(setting, backends, step * cdiv(state_bytes, step * token_bytes))
    block = max(plan.attention, raised)
    page = block * token_bytes
    return BlockPlan(
        attention=block,
        state={"none": plan.state, "align": block}.get(setting.mamba_cache_mode, raised),
        state_page_bytes=page if page != state_bytes else None,
    )


def _step(setting: CacheSetting, backends: tuple[LayerBackend, ...], block: int) -> int:
    """Tokens that the raised block is a multiple of."""
    facts, latent = setting.facts, setting.model.traits.latent
    match facts.hybrid_block_step:
        case "none":
            message = f"vLLM {facts.version} runs models with recurrent layers on its first engine."
            raise Unknown(field="vllm_version", message=message, fix="plan for 0.11.0 or later")
        case "sixteen":
            return DEFAULT_BLOCK
        case "constant":
            return _constant_step(setting, backends[0])
    step = max(backends[0].smallest_block, block, LATENT_STEP if latent and facts.latent_hybrids_step_128 else 0)
    aligned = setting.mamba_cache_mode == "align" and exports_gdn_checkpoints(setting)
    return lcm(step, GDN_CHECKPOINT_STEP) if aligned else step


def _constant_step(setting: CacheSetting, first: LayerBackend) -> int:
    if setting.model.traits.latent:
        return 128 if setting.asked.attention_backend == "CUTLASS_MLA" else 64
    wide = first.need.head_dim == 256 and setting.asked.attention_backend in ("", "FLASHINFER")
    return 32 if wide and setting.facts.wide_heads_step_32 and _is_blackwell(setting) else DEFAULT_BLOCK


def _is_blackwell(setting: CacheSetting) -> bool:
    capability = setting.gpu.compute_capability
    return capability is not None and capability[0] == 10


def _for_every_backend(setting: CacheSetting, backends: tuple[LayerBackend, ...], block: int) -> int:
    """Since 0.32 the block is also a multiple of the least that each backend takes."""
    if not setting.facts.hybrid_block_suits_every_backend:
        return block
    return round_up(block, lcm(*(each.smallest_block for each in backends)))


def exports_gdn_checkpoints(setting: CacheSetting) -> bool:
    """Whether FlashInfer's GDN prefill stores states inside a prompt (0.33 on): Hopper, and keys of 128 on Blackwell.

    Source: vLLM `layers.mamba.gdn.qwen_gdn_linear_attn._resolve_gdn_prefill_backend`.
    """
    states = [cache for cache in setting.distinct_caches() if isinstance(cache, StateCache)]
    if "gdn" not in setting.facts.states_with_checkpoints or setting.gpu.compute_capability is None:
        return False
    if not all(cache.kind == "gdn" for cache in states):
        return False
    major = setting.gpu.compute_capability[0]
    return major == 9 or (major in {10, 12} and all(cache.key_head_dim == 128 for cache in states))


def _chunk_size(setting: CacheSetting) -> int:
    chunks = {cache.chunk_size for cache in setting.distinct_caches() if isinstance(cache, StateCache)}
    return max(chunks) or CHUNK_WITHOUT_A_KEY


def _bytes_per_token(setting: CacheSetting, first: LayerBackend) -> int:
    """What attention keeps of a token on a rank, as the alignment counts it: keys and values of one size."""
    primary = _token_bytes(setting, first, setting.asked.kv_cache_dtype)
    turbo = setting.asked.kv_cache_dtype.startswith("turboquant_")
    return lcm(primary, _token_bytes(setting, first, "auto")) if turbo and setting.asked.skipped else primary


def _token_bytes(setting: CacheSetting, served: LayerBackend, kv_cache_dtype: str) -> int:
    """Keys and values are counted of one size here; a latent is counted once."""
    need = served.need
    values = 0 if need.latent else need.head_dim
    packed = setting.model.traits.hybrid or packed_by(served.backend.name, kv_cache_dtype)
    return need.kv_heads * head_bytes(need.head_dim, values, kv_cache_dtype, setting.dtype, packed=packed)


def _pads_skipped(setting: CacheSetting) -> bool:
    """Caches that are compressed, or not of attention at all, have no pages of a second dtype."""
    beside = setting.asked.skipped and setting.facts.pads_skipped_layers and not setting.gpu.is_cpu
    return bool(beside and setting.attention_backends())


def _holding_skipped_layers(setting: CacheSetting, plan: BlockPlan) -> BlockPlan:
    """The block is raised until a page holds the smallest page of a layer that keeps the model's dtype."""
    first = setting.attention_backends()[0]
    primary = _token_bytes(setting, first, setting.asked.kv_cache_dtype)
    own = _token_bytes(setting, first, "auto")
    if own <= primary:
        return plan
    smallest = first.smallest_block
    step = max(smallest, plan.attention)
    required = max(own * smallest, plan.state_page_bytes or 0)
    block = max(plan.attention, step * cdiv(required, step * primary))
    page = block * primary
    return replace(
        plan,
        attention=block,
        skipped_page_bytes=page,
        state_page_bytes=page if plan.state_page_bytes is not None else None,
    )
