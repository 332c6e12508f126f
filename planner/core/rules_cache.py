"""What vLLM refuses of the KV cache: its dtype, its blocks, the backend that reads it, states, the hybrid manager."""

from collections.abc import Iterator

from planner.core.attention_backend import Backend, first_that_serves, refused
from planner.core.attention_choice import NAMED, OLD_NAMES, attention_device, layer_need
from planner.core.attention_need import AttentionDevice, AttentionNeed
from planner.core.cache_layer import AttentionCache, CompressedCache, LatentCache
from planner.core.cache_request import CacheRequest
from planner.core.engine import Version
from planner.core.head_backends import head_preferences
from planner.core.kv_dtype import kv_cache_dtype
from planner.core.latent_backends import latent_preferences
from planner.core.rule_case import Case, Rule, refuse, warn
from planner.core.terms import Reason
from planner.core.traits import distinct_layers

FP8_NAMES = ("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc")
FP8_CHECKPOINTS = frozenset({"fp8", "modelopt", "quark"})
SELECTOR_SINCE = Version(0, 11, 1)
CHUNKS_ALLOWED = "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE"
OLD_LAYOUTS = ("NHD", "HND")
NEW_LAYOUTS = ("LBNHC", "LBHNC", "LHBNC", "BLNHC", "BLHNC", "BHLNC")
LAYOUTS_RENAMED = Version(0, 29)


def nvfp4_cache_of_a_latent(case: Case) -> Reason | None:
    """vLLM `VllmConfig.validate_nvfp4_kv_cache_with_mla`, since 0.21."""
    dtype = str(case.args.kv_cache_dtype or "")
    plain = dtype.startswith("nvfp4") and not dtype.endswith("_ds_mla")
    if not plain or not case.traits.latent or case.version < Version(0, 21):
        return None
    message = f"{dtype} packs keys and values a head, and this model keeps one latent a token."
    return refuse("nvfp4_kv_mla", "kv_cache_dtype", message, "use --kv-cache-dtype fp8 or auto")


def e5m2_cache_of_an_fp8_checkpoint(case: Case) -> Reason | None:
    """vLLM `layers.attention.attention._init_kv_cache_quant`: the checkpoint's scales are for e4m3."""
    quantization = case.model.quantization
    if case.args.kv_cache_dtype != "fp8_e5m2" or quantization is None:
        return None
    declares = quantization.method == "compressed-tensors" and bool(quantization.kv_cache)
    if quantization.method not in FP8_CHECKPOINTS and not declares:
        return None
    message = f"the scales of a {quantization.method} checkpoint are for fp8_e4m3."
    return refuse("e5m2_fp8_ckpt", "kv_cache_dtype", message, "use --kv-cache-dtype fp8_e4m3")


def fp8_cache_on_this_device(case: Case) -> Reason | None:
    """Which backend would read an fp8 cache: FlashInfer's kernels do from 8.0 on, Triton's from 8.9.

    Source: vLLM `triton_attn.TritonAttentionImpl`, `flash_attn.FlashAttentionImpl`, `platforms.cuda`.
    """
    if case.gpu.is_cpu or not case.resolved.kv_cache_dtype.startswith("fp8") or not case.gpu.below(8, 9):
        return None
    named, head_dim = _named_backend(case), case.model.head_dim
    able = not case.gpu.below(8) and head_dim in (64, 128, 256, 512) and named in ("", "FLASHINFER")
    if named == "FLASH_ATTN":
        message = f"FlashAttention reads no fp8 cache on {case.gpu.name}."
        return refuse("fp8_kv_fa", "attention_backend", message, "use --attention-backend FLASHINFER")
    if not able and not case.traits.latent:
        why = "is too old for it" if case.gpu.below(8) else f"has no kernel for heads of {head_dim}"
        why = "reads one from compute capability 8.9 on only" if named == "TRITON_ATTN" else why
        who = named or case.gpu.name
        message = f"an fp8 KV cache cannot be read here: {who} {why}."
        return refuse("fp8_kv_triton", "kv_cache_dtype", message, "use --kv-cache-dtype auto")
    message = f"on {case.gpu.name} an fp8 KV cache halves the bytes, not the compute, and needs FlashInfer installed."
    remedy = "check output quality on your own prompts before relying on it"
    return warn("fp8_kv_fa", "kv_cache_dtype", message, remedy)


def _named_backend(case: Case) -> str:
    named = case.args.attention_backend or case.args.env("VLLM_ATTENTION_BACKEND") or ""
    return OLD_NAMES.get(named.upper(), named.upper())


def backend_does_not_serve(case: Case) -> Reason | None:
    """vLLM `CudaPlatformBase.get_attn_backend_cls`, since 0.11.1: the one that is named, or else any."""
    device = attention_device(case.gpu, case.facts) if case.gpu.compute_capability is not None else None
    if device is None or case.version < SELECTOR_SINCE:
        return None
    named = NAMED.get(_named_backend(case))
    for need in _needs(case):
        reason = "" if named is None else refused(named, need, device)
        if named is not None and reason:
            message = f"{named.name} does not serve this model here: {reason}."
            return refuse("attn_selected_invalid", "attention_backend", message, "leave the choice to vLLM")
        if named is None and first_that_serves(_preferences(need, device), need, device) is None:
            return _no_backend(case, need, device)
    return None


def _no_backend(case: Case, need: AttentionNeed, device: AttentionDevice) -> Reason:
    """Speaks of what can be changed: the block, the cache's dtype, or the GPU."""
    choices = _preferences(need, device)
    objections = {backend.name: refused(backend, need, device) for backend in choices}
    why = "; ".join(f"{name}: {text}" for name, text in objections.items() if "it is for" not in text)
    if need.block_size is not None and any(not backend.objection(need, device) for backend in choices):
        message = f"no attention backend here takes blocks of {need.block_size} tokens ({why})."
        return refuse("attn_none", "block_size", message, "use a multiple of 16, or leave it out")
    field, remedy = ("gpu", "use another GPU") if need.plain_cache else ("kv_cache_dtype", "use --kv-cache-dtype auto")
    return refuse("attn_none", field, f"no attention backend serves this model on {case.gpu.name} ({why}).", remedy)


def _preferences(need: AttentionNeed, device: AttentionDevice) -> tuple[Backend, ...]:
    return latent_preferences(need, device) if need.latent else head_preferences(need, device)


def _needs(case: Case) -> Iterator[AttentionNeed]:
    """What each kind of layer asks of a backend; layers with values of another size have a kernel of their own."""
    if case.model.num_attention_heads % case.layout.tensor_parallel_size:
        return
    cache_dtype = kv_cache_dtype(case.args, model=case.model, gpu=case.gpu, facts=case.facts)
    asked = CacheRequest(
        kv_cache_dtype=cache_dtype,
        block_size=case.args.block_size,
        attention_backend=_named_backend(case),
        decode_context_parallel_size=case.context_parallel_size,
        prefill_context_parallel_size=case.prefill_parallel_size,
    )
    for cache in dict.fromkeys(cache for layer in distinct_layers(case.model.decoder) for cache in layer.caches):
        odd_values = isinstance(cache, AttentionCache) and cache.value_head_dim not in (None, cache.head_dim)
        if isinstance(cache, AttentionCache | LatentCache) and not odd_values:
            yield layer_need(
                cache,
                model=case.model,
                tensor_parallel_size=case.layout.tensor_parallel_size,
                dtype=case.resolved.dtype,
                kv_cache_dtype=cache_dtype,
                asked=asked,
            )


def block_size_on_the_cpu(case: Case) -> Reason | None:
    """vLLM CPU_ATTN takes multiples of 32; before backends were chosen by block, all on GPUs took multiples of 16."""
    asked = case.args.block_size
    step = 32 if case.gpu.is_cpu else 16
    chosen_by_block = not case.gpu.is_cpu and case.version >= SELECTOR_SINCE and case.gpu.compute_capability is not None
    if asked is None or chosen_by_block or (asked > 0 and asked % step == 0):
        return None
    message = f"no attention backend here takes blocks of {asked} tokens."
    return refuse("attn_none", "block_size", message, f"use a multiple of {step}, or leave it out")


def hybrid_manager_where_it_cannot_work(case: Case) -> Reason | None:
    """vLLM `VllmConfig.__post_init__`, since 0.13: chunked local attention rules it out unless the variable allows."""
    wanted = case.args.disable_hybrid_kv_cache_manager is False
    if not wanted or not case.traits.chunked or case.version < Version(0, 13):
        return None
    drafts = case.speculation is not None and case.speculation.method in ("eagle", "eagle3")
    if case.args.env(CHUNKS_ALLOWED) == "1" and not drafts:
        return None
    message = "this model attends within chunks, which the hybrid KV cache manager does not serve by default."
    remedy = "drop --no-disable-hybrid-kv-cache-manager"
    return refuse("hma_explicit", "disable_hybrid_kv_cache_manager", message, remedy)


def states_without_the_hybrid_manager(case: Case) -> Reason | None:
    """vLLM `v1.core.kv_cache_utils.unify_hybrid_kv_cache_specs`: a state is no attention, worded so since 0.11."""
    off = case.args.disable_hybrid_kv_cache_manager or False
    if not off or not case.traits.hybrid:
        return None
    message = "the states of this model cannot be kept as attention, which is all that is left without the manager."
    remedy = "drop --disable-hybrid-kv-cache-manager"
    return refuse("kv_promote_fail", "disable_hybrid_kv_cache_manager", message, remedy)


def state_blocks_without_prefix_caching(case: Case) -> Reason | None:
    """vLLM `VllmConfig.validate_mamba_block_size`, since 0.11.1."""
    size = case.args.number("mamba_block_size")
    if size is None or size == case.resolved.max_model_len or case.resolved.enable_prefix_caching:
        return None
    message = "without prefix caching a request has a single state, and no blocks of them."
    remedy = "add --enable-prefix-caching, or leave --mamba-block-size out"
    return refuse("mamba_block_noprefix", "mamba_block_size", message, remedy)


def cached_states_need_chunks(case: Case) -> Reason | None:
    """vLLM `MambaModelConfig` and `VllmConfig.validate_block_size`, since 0.15: prompts are cut where a block ends."""
    if case.resolved.mamba_cache_mode != "align":
        return None
    if not case.resolved.enable_chunked_prefill:
        message = "states at block ends are kept only where prompts are cut there."
        remedy = "leave chunked prefill on, or use --no-enable-prefix-caching"
        return refuse("mamba_align_chunked", "enable_chunked_prefill", message, remedy)
    if case.args.asks("disable_chunked_mm_input"):
        message = "states at block ends are kept only where images may be cut there."
        return refuse("mamba_align_chunked", "disable_chunked_mm_input", message, "drop --disable-chunked-mm-input")
    return None


def matching_unit_does_not_fit(case: Case) -> Reason | None:
    """vLLM `v1.core.kv_cache_utils.resolve_kv_cache_block_sizes`, since 0.26: hits land on blocks or parts."""
    unit, block = case.args.number("prefix_match_unit"), case.resolved.block_size * case.context_parallel_size
    if unit is None or not case.resolved.enable_prefix_caching or case.version < Version(0, 26):
        return None
    one_kind = not (case.traits.has_states or case.traits.windowed or case.traits.sparse)
    if unit > 0 and (unit == block if one_kind else block % unit == 0):
        return None
    wanted = f"be {block}, the block" if one_kind else f"divide {block}, the block"
    message = f"{int(unit)} tokens are no unit of prefix matching here: it must {wanted}."
    return refuse("prefix_match_unit", "prefix_match_unit", message, "drop --prefix-match-unit")


def layout_is_unknown(case: Case) -> Reason | None:
    """vLLM `v1.attention.backends.utils.resolve_kv_cache_layout`: NHD and HND until 0.28, then four orders."""
    layout = case.args.env("VLLM_KV_CACHE_LAYOUT")
    if layout is None or case.version < Version(0, 9, 2):
        return None
    known = OLD_LAYOUTS if case.version < LAYOUTS_RENAMED else (*OLD_LAYOUTS, *NEW_LAYOUTS)
    if layout not in known:
        message = f"{layout} is no layout of the KV cache in vLLM {case.version}."
    elif case.version >= LAYOUTS_RENAMED and not _holds_mixed_pages(case, layout):
        message = f"the layout {layout} cannot hold pages of several sizes side by side."
    else:
        return None
    return refuse("kv_layout", "VLLM_KV_CACHE_LAYOUT", message, "leave the variable unset")


def _holds_mixed_pages(case: Case, layout: str) -> bool:
    """Pages of one block must lie together; where groups differ too, the block must come before the layer."""
    order = {"NHD": "LBNHC", "HND": "LBHNC"}.get(layout, layout)
    caches = [cache for layer in distinct_layers(case.model.decoder) for cache in layer.caches]
    if any(isinstance(cache, CompressedCache) for cache in caches):
        return order.startswith("BL")
    return order.startswith(("BL", "LB")) or not case.traits.sparse


RULES: tuple[Rule, ...] = (
    nvfp4_cache_of_a_latent,
    hybrid_manager_where_it_cannot_work,
    state_blocks_without_prefix_caching,
    cached_states_need_chunks,
    e5m2_cache_of_an_fp8_checkpoint,
    fp8_cache_on_this_device,
    block_size_on_the_cpu,
    backend_does_not_serve,
    states_without_the_hybrid_manager,
    layout_is_unknown,
    matching_unit_does_not_fit,
)
