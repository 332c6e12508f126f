"""Puts a question about the KV cache to whichever vLLM release is imported, in one form for all of them.

Runs inside an engine's interpreter and never inside ours. A question has
  specs            what a layer may cache, with the names of our `KvSpec` (fields at their default are left out)
  stages           for each pipeline stage [available_bytes, [[layers in a row, index into specs], ...]]
  max_model_len    and, with `auto`, a length of at most that is fitted
  override         blocks asked for, or null
  in_flight_tokens, encoder_tokens, context_parallel, mamba_cache_mode, hybrid_manager, block_outermost
An answer has the groups of each stage as [layers, block size, bytes of a block], num_gpu_blocks, tokens and concurrency
(as logged, or whole where the release tells), and max_model_len; or how the release refused; or null where its specs
cannot say what is asked.
"""

import dataclasses
import importlib
import inspect
import logging
import re
from contextlib import suppress
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import torch

specs_of_release = importlib.import_module("vllm.v1.kv_cache_interface")
utilities = planner = importlib.import_module("vllm.v1.core.kv_cache_utils")
with suppress(ImportError):
    planner = importlib.import_module("vllm.v1.core.kv_cache_planning")  # where 0.33 moved it

CLASSES = {
    "full_attention": "FullAttentionSpec",
    "sink_full_attention": "SinkFullAttentionSpec",
    "mla_attention": "MLAAttentionSpec",
    "sliding_window": "SlidingWindowSpec",
    "sliding_window_mla": "SlidingWindowMLASpec",
    "chunked_local_attention": "ChunkedLocalAttentionSpec",
    "mamba": "MambaSpec",
    "cross_attention": "CrossAttentionSpec",
    "circular_buffer": "CircularBufferSpec",
    "rswa": "RSWASpec",
}
LATENT = ("mla_attention", "sliding_window_mla")
REFUSALS = {
    "No available memory": "no_kv_memory",
    "To serve at least one request": "kv_one_request",
    "Cannot auto-fit": "autofit_fail",
}
STOPS = "stops"
STOPPED = (AssertionError, NotImplementedError, StopIteration, TypeError, ValueError)
LINES = {
    "tokens": re.compile(r"KV cache size: ([\d,]+) tokens"),
    "concurrency": re.compile(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x"),
    "estimate": re.compile(r"estimated maximum model length is (\d+)"),
}


class CannotSay(Exception):
    """This release has no spec for what is asked."""


class Heard(logging.Handler):
    """What the planner logged while it answered."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage() + "\n"

    def numbers(self, line: str) -> list[float]:
        return [float(text.replace(",", "")) for text in LINES[line].findall(self.text)]


heard = Heard()


def listen() -> None:
    """Hear what the planner logs, and let it plan specs that no model registered."""
    logger = logging.getLogger("vllm")
    logger.handlers = [heard]
    logger.setLevel(logging.INFO)
    planner.logger.info_once = lambda text, *values, **_: planner.logger.info(text, *values)
    for module in (utilities, planner):
        if hasattr(module, "KVCacheSpecRegistry"):
            module.KVCacheSpecRegistry.check_kv_cache_spec_registry = lambda *_, **__: None


def spec_of(fields: dict[str, Any], mode: str) -> Any:
    """Return this release's spec; raises CannotSay where it has none."""
    kind = fields["kind"]
    if kind == "mamba":
        return state_of(fields, mode)
    heads = {"num_kv_heads": fields.get("num_kv_heads", 1), "head_size": fields["head_size"]}
    values = {
        "block_size": fields["block_size"],
        **heads,
        "dtype": getattr(torch, fields.get("dtype", "bfloat16")),
        **{name: value for name, value in fields.items() if name in DIRECT},
    }
    if "tokens_per_state" in fields:
        values["tokens_per_state"] = Fraction(fields["tokens_per_state"])
    if kind not in LATENT and fields["head_size_v"] != fields["head_size"]:
        values["head_size_v"] = fields["head_size_v"]
    return made(kind, values, fields.get("cache_role", ""))


DIRECT = (
    "sliding_window",
    "attention_chunk_size",
    "rswa_window",
    "page_size_padded",
    "alignment",
    "block_stride_alignment",
    "state_content_bytes",
    "num_head_slots",
    "model_version",
    "dcp_sharded",
)


def made(kind: str, values: dict[str, Any], role: str = "") -> Any:
    """Return a spec of this kind with the fields that this release's class has."""
    cls = getattr(specs_of_release, CLASSES[kind], None)
    if cls is None and kind == "mla_attention":
        cls, values = specs_of_release.FullAttentionSpec, {**values, "use_mla": True}
    if cls is None:
        raise CannotSay
    if "MULTIMODAL_REGISTRY" in inspect.getsource(cls):
        raise CannotSay  # 0.10.2 asks a whole model how long its encoder's input is
    names = {field.name for field in dataclasses.fields(cls) if field.init}
    values = {**implied(names, kind, role), **reworded(values, names)}
    if set(values) - names:
        raise CannotSay
    return cls(**values)


def implied(names: set[str], kind: str, role: str) -> dict[str, Any]:
    """Return what a release's specs say beside the question: the format's name, and whether the kernel strides."""
    said = {"use_mla": False, "indexes_kv_by_block_stride": kind != "sliding_window_mla" and not role}
    if kind in LATENT and role != "indexer":
        said["cache_dtype_str"] = "auto"
    return {name: value for name, value in said.items() if name in names}


def reworded(values: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Return a question's fields under the names that this release has for them."""
    values = dict(values)
    if "tokens_per_state" in values and "compress_ratio" in names:
        values["compress_ratio"] = int(values.pop("tokens_per_state"))
    if values.get("dcp_sharded") and "dcp_sharded" not in names:
        del values["dcp_sharded"]  # before there was a word for it, all attention was
    return values


def state_of(fields: dict[str, Any], mode: str) -> Any:
    """Return the spec of a recurrent state of so many bytes."""
    if mode not in state_modes():
        raise CannotSay
    values = {"block_size": fields["block_size"], "shapes": ((fields["state_bytes"],),)}
    for name in ("page_size_padded", "num_speculative_blocks", "num_prefill_checkpoint_blocks"):
        if name in fields:
            values[name] = fields[name]
    names = {field.name for field in dataclasses.fields(getattr(specs_of_release, "MambaSpec", NoFields))}
    values |= {"dtypes": (torch.int8,)} if "dtypes" in names else {"dtype": torch.int8}
    if "mamba_cache_mode" in names:
        values["mamba_cache_mode"] = mode
    return made("mamba", values)


def state_modes() -> set[str]:
    """Return which states of a request this release can keep: the running one, those it aligns, or all."""
    cls = getattr(specs_of_release, "MambaSpec", NoFields)
    source = inspect.getsource(getattr(cls, "max_memory_usage_bytes", NoFields))
    if not hasattr(cls, "mamba_cache_mode"):
        return {"all"} if "max_model_len" in source else {"none"}
    return {"none", *(mode for mode in ("align", "all") if f'"{mode}"' in source)}


@dataclasses.dataclass
class NoFields:
    """What a release without states has of them."""


def kv_cache_layout(name: str) -> Any:
    """Return a cache layout of releases that have such a thing."""
    for module in ("vllm.v1.kv_cache_layout", "vllm.v1.core.kv_cache_utils"):
        with suppress(ImportError, AttributeError):
            return importlib.import_module(module).KVCacheLayout[name]
    return None


def settings_of(question: dict[str, Any]) -> Any:
    """Return the settings that the planners of all releases read."""
    layout = "BLHNC" if question.get("block_outermost") else "LBHNC"
    if question.get("block_outermost") and kv_cache_layout(layout) is None and not has_tuples():
        raise CannotSay
    if question.get("context_parallel", 1) > 1 and "decode_context_parallel" not in inspect.getsource(specs_of_release):
        raise CannotSay
    in_flight, encoder = question.get("in_flight_tokens", 8192), question.get("encoder_tokens", 8192)
    length, shards = question["max_model_len"], question.get("context_parallel", 1)
    hybrid = question.get("hybrid_manager", True)
    return SimpleNamespace(
        model_config=SimpleNamespace(
            max_model_len=length,
            original_max_model_len=-1 if question.get("auto") else length,
            hf_config=SimpleNamespace(model_type=""),
            supports_kv_cache_grouping=False,
            use_mla=False,
        ),
        cache_config=SimpleNamespace(
            num_gpu_blocks_override=question.get("override"),
            block_size=min(spec["block_size"] for spec in question["specs"]),
            cache_dtype="auto",
            enable_prefix_caching=True,
            gpu_memory_utilization=0.9,
            kv_cache_layout=layout,
            get_resolved_kv_cache_layout=lambda: kv_cache_layout(layout),
            prefix_cache_retention_interval=0,
            mamba_cache_mode=question.get("mamba_cache_mode", "none"),
            num_gpu_blocks=None,
            hash_block_size=None,
        ),
        parallel_config=SimpleNamespace(
            decode_context_parallel_size=shards, prefill_context_parallel_size=1, tensor_parallel_size=shards
        ),
        scheduler_config=SimpleNamespace(
            disable_hybrid_kv_cache_manager=not hybrid,
            max_num_batched_tokens=in_flight,
            max_num_encoder_input_tokens=encoder,
        ),
        attention_config=SimpleNamespace(hisparse_config=None),
        device_config=SimpleNamespace(device_type="cuda"),
        speculative_config=None,
        kv_transfer_config=None,
        max_in_flight_tokens=in_flight,
        max_concurrent_batches=1,
        num_prefill_lookahead_tokens=0,
    )


def has_tuples() -> bool:
    """Whether the release packs pages of several sizes without a layout that says so (0.20 to 0.28)."""
    return hasattr(specs_of_release, "SlidingWindowMLASpec")


def planned(settings: Any, workers: list[dict[str, Any]], available: list[int]) -> list[Any]:
    """Run this release's planner and return the configuration of each worker."""
    if hasattr(planner, "get_global_kv_cache_groups"):
        groups = planner.get_global_kv_cache_groups(settings, workers)
        return planner.get_kv_cache_configs(settings, workers, available, groups)
    if hasattr(planner, "get_kv_cache_configs"):
        return planner.get_kv_cache_configs(settings, workers, available)
    configs = [planner.get_kv_cache_config(settings, *worker) for worker in zip(workers, available, strict=True)]
    planner.unify_kv_cache_configs(configs)
    return configs


def logged(settings: Any, configs: list[Any]) -> tuple[int, float]:
    """Return the two figures of the log, the smallest where each worker has its own."""
    if hasattr(utilities, "get_kv_cache_capacity"):
        shared = utilities.generate_scheduler_kv_cache_config(configs)
        return utilities.get_kv_cache_capacity(settings, shared)
    return int(min(heard.numbers("tokens"))), min(heard.numbers("concurrency"))


def group_of(group: Any) -> list[Any]:
    """Return a group's layers, its block size and the bytes that a block of them takes."""
    spec = group.kv_cache_spec
    layers = [int(name.split(".")[1]) for name in group.layer_names]
    own = getattr(spec, "kv_cache_specs", None)
    pages = [(own[name] if own else spec).page_size_bytes for name in group.layer_names]
    return [layers, spec.block_size, sum(pages)]


def workers_of(question: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the layers of each worker cache, by name."""
    mode = question.get("mamba_cache_mode", "none")
    specs, workers, first = [spec_of(fields, mode) for fields in question["specs"]], [], 0
    for _, rows in question["stages"]:
        worker = {}
        for count, index in rows:
            worker |= {f"layers.{number}.attn": specs[index] for number in range(first, first + count)}
            first += count
        workers.append(worker)
    return workers


def answer(question: dict[str, Any]) -> dict[str, Any] | None:
    """Return this release's plan, its refusal, or None where its specs cannot say what is asked."""
    heard.text = ""
    try:
        settings, workers = settings_of(question), workers_of(question)
    except CannotSay:
        return None
    try:
        configs = planned(settings, workers, [stage[0] for stage in question["stages"]])
        tokens, concurrency = logged(settings, configs)
    except STOPPED as error:
        text = str(error)
        estimate = LINES["estimate"].search(text)
        rule = next((rule for start, rule in REFUSALS.items() if start in text), STOPS)
        return {"refusal": rule, "estimate": int(estimate.group(1)) if estimate else 0}
    return {
        "num_gpu_blocks": min(config.num_blocks for config in configs),
        "tokens": tokens,
        "max_concurrency": concurrency,
        "max_model_len": settings.model_config.max_model_len,
        "stages": [[group_of(group) for group in config.kv_cache_groups] for config in configs],
    }
