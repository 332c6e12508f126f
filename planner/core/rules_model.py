"""What vLLM refuses of a model in this release and on this device: architecture, length, dtype, what it takes in."""

from planner.core.decoder import Tower
from planner.core.defaults import refused_dtypes
from planner.core.engine import Version
from planner.core.rule_case import Case, Rule, refuse, warn
from planner.core.terms import Reason

EMBEDS_ONLY = frozenset(
    {
        "BertModel",
        "BertForSequenceClassification",
        "GteModel",
        "GteNewModel",
        "JinaVLForRanking",
        "ModernBertModel",
        "NomicBertModel",
        "RobertaModel",
        "XLMRobertaForSequenceClassification",
        "XLMRobertaModel",
    }
)
SPAWN = "spawn"


def architecture_not_in_this_version(case: Case) -> Reason | None:
    """vLLM `model_executor.models.registry`: an architecture is served from one release on, some until another."""
    first, last, version = case.model.first, case.model.last, case.version
    if (first is None or version >= first) and (last is None or version <= last):
        return None
    when = f"from {first} on" if first is not None and version < first else f"until {last}"
    message = f"{case.model.architecture} is served by vLLM {when}, not by {version}."
    return refuse("arch_unsupported", "vllm_version", message, f"use a vLLM {when}")


def generating_with_an_embedding_model(case: Case) -> Reason | None:
    """vLLM `config.model.ModelConfig.__post_init__`, since 0.10.2."""
    if case.version < Version(0, 10, 2) or case.model.architecture not in EMBEDS_ONLY:
        return None
    message = f"{case.model.architecture} embeds texts and generates none."
    return refuse("runner_generate", "runner", message, "use --runner pooling, or another model")


def max_model_len_above_derived(case: Case) -> Reason | None:
    """vLLM `config.model._get_and_verify_max_len`."""
    derived, asked = case.model.context.limit(case.version), case.args.max_model_len
    if derived is None or not isinstance(asked, int) or asked <= derived:
        return None
    key = case.model.derived_max_model_len_key
    if case.args.env("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1":
        message = (
            f"{asked:,} is beyond the trained length of {derived:,} ({key}); positions past it may give wrong output."
        )
        return warn("max_model_len_gt_derived", "max_model_len", message, f"use --max-model-len {derived}")
    return refuse(
        "max_model_len_gt_derived",
        "max_model_len",
        f"{asked:,} is above the {derived:,} tokens this model was trained for ({key}).",
        f"use --max-model-len {derived}, extend the length with RoPE scaling through --hf-overrides, "
        "or set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 and answer for the quality",
    )


def max_model_len_not_positive(case: Case) -> Reason | None:
    """vLLM `config.model.ModelConfig`."""
    if case.resolved.max_model_len >= 1:
        return None
    message = f"{case.resolved.max_model_len} is not a positive length."
    return refuse("max_model_len_not_positive", "max_model_len", message, "give a positive number of tokens, or auto")


def bfloat16_below_sm80(case: Case) -> Reason | None:
    """vLLM `platforms.cuda.check_if_supports_dtype`: asked for it is refused, by default it becomes float16."""
    if not case.gpu.below(8):
        return None
    if case.resolved.dtype == "bfloat16":
        message = f"{case.gpu.name} has no bfloat16 (compute capability below 8.0)."
        return refuse("bf16_lt_sm80", "dtype", message, "use --dtype half")
    if case.model.dtype == "bfloat16" and case.args.dtype in (None, "auto"):
        falls_to = case.resolved.dtype
        cost = "its smaller range" if falls_to == "float16" else "twice the memory"
        message = f"{case.gpu.name} has no bfloat16, so vLLM falls back to {falls_to} with {cost}."
        return warn("bf16_auto_fallback", "dtype", message, "nothing to do unless outputs overflow")
    return None


def float16_unsupported(case: Case) -> Reason | None:
    """vLLM `config.model._is_valid_dtype`; which families it refuses differs a little by release."""
    if (case.resolved.dtype, case.model.model_type) not in refused_dtypes(case.facts):
        return None
    message = f"model type {case.model.model_type} overflows in float16."
    return refuse("fp16_unsupported_model", "dtype", message, "use --dtype bfloat16, or float32")


def prompt_embeddings_of_an_encoder_decoder(case: Case) -> Reason | None:
    """vLLM `config.model.validate_model_config_after`, since 0.29."""
    asks = case.args.asks("enable_prompt_embeds") and case.traits.encoder_decoder
    if not asks or case.version < Version(0, 29):
        return None
    message = "the decoder of an encoder-decoder takes no embeddings in place of its prompt."
    return refuse("encdec_prompt_embeds", "enable_prompt_embeds", message, "drop --enable-prompt-embeds")


def sleep_mode_on_the_cpu(case: Case) -> Reason | None:
    """vLLM `Platform.is_sleep_mode_available`: CUDA, ROCm and XPU."""
    if not case.gpu.is_cpu or not case.args.enable_sleep_mode:
        return None
    message = "the CPU platform has no memory that can be put aside and taken back."
    return refuse("sleep_unsupported", "enable_sleep_mode", message, "drop --enable-sleep-mode")


def shared_memory_transport(case: Case) -> Reason | None:
    """vLLM `VllmConfig.__post_init__` and `ModelConfig.verify_with_parallel_config`, since 0.19."""
    if case.args.setting("mm_tensor_ipc") != "torch_shm" or not case.traits.multimodal:
        return None
    if case.layout.gpus > 1:
        message = "images go through shared memory to one process only, and this layout has more."
        return refuse("torch_shm_spawn", "mm_tensor_ipc", message, "use --mm-tensor-ipc direct_rpc, or a single GPU")
    if case.args.env("VLLM_WORKER_MULTIPROC_METHOD") == SPAWN:
        return None
    message = "images through shared memory need a worker that is spawned, not forked."
    remedy = "set VLLM_WORKER_MULTIPROC_METHOD=spawn, or use --mm-tensor-ipc direct_rpc"
    return refuse("torch_shm_spawn", "mm_tensor_ipc", message, remedy)


def item_larger_than_a_step(case: Case) -> Reason | None:
    """vLLM `v1.core.encoder_cache_manager.compute_mm_encoder_budget`: an item that may not be cut must fit a step."""
    tokens, whole = case.resolved.max_num_batched_tokens, _largest_whole_item(case)
    if whole is None or whole <= tokens:
        return None
    message = f"an item of {whole:,} tokens must fit one step, and a step has {tokens:,}."
    remedy = f"use --max-num-batched-tokens {whole} or more"
    return refuse("mm_item_gt_tokens", "max_num_batched_tokens", message, remedy)


def _largest_whole_item(case: Case) -> int | None:
    """The tokens of the largest item that this command does not let vLLM cut; None where it may cut each."""
    decoder = case.model.decoder
    if case.args.asks("language_model_only"):
        return None
    if case.args.asks("disable_chunked_mm_input") or case.traits.encoder_decoder:
        return max((_tokens_of(tower) for tower in decoder.towers), default=None)
    return decoder.whole_item_tokens


def _tokens_of(tower: Tower) -> int:
    return tower.max_tokens_per_item or 0


def prompts_longer_than_the_server_serves(case: Case) -> Reason | None:
    """vLLM `v1.engine.input_processor`: such a request gets HTTP 400; one token at least must be left to generate."""
    length = case.resolved.max_model_len
    longest = max((request.prompt_tokens for request in case.requests), default=0)
    if longest < length:
        return None
    message = f"prompts of {longest:,} tokens leave nothing to generate within max_model_len {length:,}."
    return warn(
        "prompt_gt_len", "max_model_len", message, f"use --max-model-len {longest + 1} or more, or shorter prompts"
    )


RULES: tuple[Rule, ...] = (
    architecture_not_in_this_version,
    generating_with_an_embedding_model,
    max_model_len_above_derived,
    max_model_len_not_positive,
    prompt_embeddings_of_an_encoder_decoder,
    sleep_mode_on_the_cpu,
    float16_unsupported,
    shared_memory_transport,
    bfloat16_below_sm80,
    item_larger_than_a_step,
    prompts_longer_than_the_server_serves,
)
