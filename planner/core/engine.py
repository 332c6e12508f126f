"""A vLLM version and a vLLM command: what that version does, what was asked for, and what it comes to."""

import re
from dataclasses import dataclass, fields

from planner.core.cache_request import NOTHING_ASKED, CacheRequest
from planner.core.errors import BadInput
from planner.core.lora_slots import LoraSlots
from planner.core.offload_request import OffloadRequest
from planner.core.tower_use import EVERY_TOWER, TowerUse

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+)(?:\.\d+)?)?(?:[.+-]?(?:rc|dev|post|a|b|cpu|cu|g)[\w.+-]*)?")


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A vLLM release; pre- and post-release suffixes are read and dropped."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Return the release named by text such as `0.11.2.post2`, `v0.19` or `0.26.1rc1.dev608`; else BadInput."""
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            raise BadInput(
                field="vllm_version",
                message=f"{text!r} is not a vLLM version.",
                fix="give a release such as 0.32.0",
            )
        major, minor, patch = match.groups()
        return cls(int(major), int(minor), int(patch or 0))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDefaults:
    """One row of vLLM's table of scheduler defaults: it holds for devices of at least `min_total_gib`."""

    min_total_gib: float
    excludes: tuple[str, ...] = ()
    offline_tokens: int
    server_tokens: int
    max_num_seqs: int
    max_num_seqs_offline: int | None = None

    def holds_for(self, total_gib: float, name: str) -> bool:
        """Whether a device of this size and (lower-case) name takes this row."""
        return total_gib >= self.min_total_gib and not any(part in name for part in self.excludes)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What one vLLM version does, as far as memory is concerned; `catalog/engines.yaml` holds the sources.

    `cuda_graphs` is `outside` (captured after sizing), `measured_outside` (0.18 to 0.19: measured, not deducted) or
    `inside` the budget (from 0.20). `model_runner_v2` tells which models the second runner serves by default: `none`,
    `listed_plain` (those listed, unless quantised or with experts), `listed`, `listed_or_dense`, `nearly_all`; it lacks
    the flags and drafters named with it. `hybrid_prefix_caching` is `never`, `some` (models that keep every state),
    `asked` or `default`; `async_over_stages` is `never`, `always` or `v2` (only with the second runner).
    `block_size_follows` is `platform`, `first_backend` or `every_backend`; `hybrid_block_step` `none`, `sixteen`,
    `constant` or `backend`; `window_block` `primary`, `smallest` or `largest`: what a window's block is.
    """

    version: Version
    assumed_newest: bool = False
    default_gpu_memory_utilization: float
    checks_free_memory: bool
    rounds_requested_up: bool
    cuda_graphs: str
    measures_by_mem_get_info: bool
    withholds_null_block: bool
    has_hybrid_manager: bool = True
    kv_groups_of_whole_model: bool = True
    kv_types_share_a_group: bool = True
    kv_types_split_by_stage: bool = True
    kv_group_size_ratio: float = 1.5
    kv_merges_before_grouping: bool = True
    kv_pages_unified_by: str = "padding"
    kv_states_padded: bool = True
    kv_states_count_drafts: tuple[str, ...] = ("none", "align", "all")
    kv_states_by_page: bool = True
    kv_packing: str = "layout_by_state"
    kv_promotes_replicated_apart: bool = True
    kv_promotes_to_full_block: bool = True
    kv_promotes_latent_windows: bool = False
    kv_promotion_keeps_padding: bool = True
    kv_falls_back_to_full: bool = True
    kv_check_counts: str = "blocks"
    windows_count_what_is_in_flight: bool = True
    kv_concurrency_by_group: bool = True
    override_counts_as_memory: bool = True
    checks_whole_model: bool = False
    kv_size_is_relative_to_length: bool
    concurrency_is_tokens_over_length: bool
    states_estimated_max_model_len: bool
    auto_max_model_len: bool
    kv_cache_memory_bytes: bool
    async_scheduling_default: bool
    model_runner_v2: str
    model_runner_v2_architectures: tuple[str, ...] = ()
    model_runner_v2_lacks: tuple[str, ...] = ()
    model_runner_v2_lacks_drafters: tuple[str, ...] = ()
    async_drafters: tuple[str, ...] = ()
    async_over_stages: str = "v2"
    chunked_prefill_is_forced: bool = False
    hybrid_prefix_caching: str = "default"
    states_of_every_block: bool = False
    batch_capped_by_sequences: bool = True
    sequences_capped_by_batch: bool = True
    batched_dp_tokens: int | None = None
    batched_token_defaults: tuple[BatchDefaults, ...]
    block_size_follows: str = "every_backend"
    latent_backend_on_blackwell: str = ""
    latent_block_takes_multiples: bool = True
    hybrid_block_step: str = "backend"
    hybrid_block_suits_every_backend: bool = True
    latent_hybrids_step_128: bool = True
    wide_heads_step_32: bool = False
    window_block: str = "largest"
    pads_skipped_layers: bool = True
    states_follow_config: tuple[str, ...] = ("gdn", "mamba2")
    states_with_checkpoints: tuple[str, ...] = ()
    nemotron_state_dtype: str = "float32"
    states_come_last: bool = False
    chunks_have_their_own_kind: bool = True
    hybrid_connectors: tuple[str, ...] = ()
    cpu_block_size: int = 128
    cpu_server_tokens: int = 2048
    cpu_offline_tokens: int = 4096
    cpu_max_num_seqs: int = 128
    cpu_max_num_seqs_offline: int = 256
    cpu_default_kv_gib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineArgs:
    """A vLLM command as given, under vLLM's own names; None means "not given".

    `environment` holds the variables set with the command; `other` holds known flags that do not touch memory.
    """

    model: str = ""
    usage: str = "server"
    dtype: str | None = None
    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    data_parallel_size: int | None = None
    gpu_memory_utilization: float | None = None
    max_model_len: int | str | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    kv_cache_dtype: str | None = None
    block_size: int | None = None
    num_gpu_blocks_override: int | None = None
    kv_cache_memory_bytes: int | None = None
    enforce_eager: bool | None = None
    enable_prefix_caching: bool | None = None
    enable_chunked_prefill: bool | None = None
    quantization: str | None = None
    cpu_offload_gb: float | None = None
    swap_space: float | None = None
    async_scheduling: bool | None = None
    cudagraph_capture_sizes: tuple[int, ...] | None = None
    max_cudagraph_capture_size: int | None = None
    compilation_config: str | None = None
    optimization_level: int | None = None
    performance_mode: str | None = None
    long_prefill_token_threshold: int | None = None
    watermark: float | None = None
    load_format: str | None = None
    served_model_name: str | None = None
    trust_remote_code: bool | None = None
    attention_backend: str | None = None
    enable_expert_parallel: bool | None = None
    enable_eplb: bool | None = None
    decode_context_parallel_size: int | None = None
    prefill_context_parallel_size: int | None = None
    speculative_config: str | None = None
    enable_lora: bool | None = None
    enable_sleep_mode: bool | None = None
    disable_hybrid_kv_cache_manager: bool | None = None
    environment: tuple[tuple[str, str], ...] = ()
    other: tuple[tuple[str, str | bool], ...] = ()

    def env(self, name: str) -> str | None:
        """Return a variable set with the command (the last one wins), or None."""
        return dict(self.environment).get(name)

    def setting(self, name: str) -> object:
        """Return any flag under vLLM's own name, those that do not touch memory too; None where it is not given."""
        value = getattr(self, name, None)
        return value if value is not None else dict(self.other).get(name)

    def number(self, name: str) -> float | None:
        """Return a flag that takes a number; None where it is not given or holds none."""
        try:
            return float(str(self.setting(name)))
        except ValueError:
            return None

    def asks(self, name: str) -> bool:
        """Whether a switch is turned on."""
        return self.setting(name) is True

    @property
    def given(self) -> frozenset[str]:
        """The names of the flags that the command sets."""
        skipped = {"model", "usage", "environment", "other"}
        return frozenset(f.name for f in fields(self) if f.name not in skipped and getattr(self, f.name) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedArgs:
    """The command with every default of its version filled in; `given` names what the user set.

    `cudagraph_mode` is `NONE`, `PIECEWISE`, `FULL`, `FULL_DECODE_ONLY` or `FULL_AND_PIECEWISE`; `model_runner` is `v1`
    or `v2`. `mamba_cache_mode` says which states a request keeps: the running one (`none`), those at block ends
    (`align`) or all (`all`). `max_concurrent_batches` may be in flight at once. `towers` says which of a model's
    encoders are loaded, `lora` what is kept ready for adapters, `caches` what decides the cache of each layer;
    `block_size` is that of full attention as it ends up.
    """

    dtype: str
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    gpu_memory_utilization: float
    max_model_len: int
    auto_max_model_len: bool
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_cache_dtype: str
    kv_element_bytes: int
    block_size: int
    enforce_eager: bool
    enable_prefix_caching: bool
    enable_chunked_prefill: bool
    async_scheduling: bool
    cudagraph_mode: str
    cudagraph_capture_sizes: tuple[int, ...]
    model_runner: str
    kv_cache_memory_bytes: int | None
    num_gpu_blocks_override: int | None
    layers_per_stage: tuple[int, ...]
    given: frozenset[str]
    mamba_cache_mode: str = "none"
    max_concurrent_batches: int = 1
    num_speculative_tokens: int = 0
    towers: TowerUse = EVERY_TOWER
    lora: LoraSlots | None = None
    offload: OffloadRequest | None = None
    frontend_bytes: int = 0
    older_engine: str = ""
    caches: CacheRequest = NOTHING_ASKED

    @property
    def max_in_flight_tokens(self) -> int:
        """Tokens that may be scheduled and not yet settled (vLLM `VllmConfig.max_in_flight_tokens`, 0.26 on)."""
        return self.max_concurrent_batches * self.max_num_batched_tokens
