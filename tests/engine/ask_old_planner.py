"""Ask the planner of any vLLM release for blocks: a list of questions as JSON on stdin, a list of answers on stdout.

    PYTHONPATH=SOURCES PYTHON_OF_THE_ENGINE tests/engine/ask_old_planner.py < questions.json

SOURCES holds the release's Python files (`vllm/...`, unpacked from its wheel). The planner is plain Python, so it runs
on a newer release's torch and transformers; packages that only other parts of that release import are stood in for.

A question is [stages, block_size, max_model_len, override], a stage [layers, kv_heads, head_size, element_bytes,
available_bytes]; max_model_len -N means "fit a length of at most N". An answer is [num_gpu_blocks, logged tokens,
logged concurrency, max_model_len], the figures read off the release's own log line, or [refusal, estimated length].
"""

import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import json
import logging
import os
import re
import sys
import types
from contextlib import suppress
from types import SimpleNamespace

os.environ.update(VLLM_LOGGING_LEVEL="INFO", VLLM_USE_V1="1")
ANSWERS = os.dup(1)
os.dup2(2, 1)  # whatever the release prints is no answer
ABSENT = ("gguf", "diskcache", "ray", "cupy")
REFUSALS = {
    "No available memory": "no_kv_memory",
    "To serve at least one request": "kv_one_request",
    "Cannot auto-fit": "autofit_fail",
}
LINES = {
    "tokens": re.compile(r"KV cache size: ([\d,]+) tokens"),
    "concurrency": re.compile(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x"),
    "estimate": re.compile(r"estimated maximum model length is (\d+)"),
}


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds empty modules for packages that this environment lacks."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in ABSENT else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: self._missing(name)
        return module

    def exec_module(self, module):
        """Nothing to run."""

    @staticmethod
    def _missing(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


sys.meta_path.insert(0, StandIn())

torch = importlib.import_module("torch")
transformers = importlib.import_module("transformers")
_register = transformers.AutoConfig.register
transformers.AutoConfig.register = staticmethod(lambda *names, **how: _register(*names, **{**how, "exist_ok": True}))

utilities = planner = importlib.import_module("vllm.v1.core.kv_cache_utils")
with suppress(ImportError):
    planner = importlib.import_module("vllm.v1.core.kv_cache_planning")  # where 0.33 moved it
FullAttentionSpec = importlib.import_module("vllm.v1.kv_cache_interface").FullAttentionSpec

DTYPES = {1: torch.float8_e4m3fn, 2: torch.bfloat16, 4: torch.float32}


class Heard(logging.Handler):
    """What the planner logged while it answered."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.text = ""

    def emit(self, record):
        self.text += record.getMessage() + "\n"


def full_attention(block_size, kv_heads, head_size, element_bytes):
    """Return a layer's spec with the fields that this release's class has."""
    values = {
        "block_size": block_size,
        "num_kv_heads": kv_heads,
        "head_size": head_size,
        "dtype": DTYPES[element_bytes],
        "use_mla": False,
    }
    names = {field.name for field in dataclasses.fields(FullAttentionSpec) if field.init}
    return FullAttentionSpec(**{name: value for name, value in values.items() if name in names})


def kv_cache_layout():
    """Return the enumeration of cache layouts of releases that keep it in a module of its own."""
    with suppress(ImportError):
        return importlib.import_module("vllm.v1.kv_cache_layout").KVCacheLayout


def config_of(block_size, max_model_len, override):
    """Return the settings that the planners of all these releases read."""
    layout = kv_cache_layout()
    return SimpleNamespace(
        model_config=SimpleNamespace(
            max_model_len=abs(max_model_len),
            original_max_model_len=-1 if max_model_len < 0 else max_model_len,
            hf_config=SimpleNamespace(model_type=""),
            supports_kv_cache_grouping=False,
            use_mla=False,
        ),
        cache_config=SimpleNamespace(
            num_gpu_blocks_override=override,
            block_size=block_size,
            cache_dtype="auto",
            enable_prefix_caching=True,
            gpu_memory_utilization=0.9,
            kv_cache_layout="LBHNC",
            get_resolved_kv_cache_layout=lambda: layout["LBHNC"],
            prefix_cache_retention_interval=0,
            mamba_cache_mode="none",
            num_gpu_blocks=None,
        ),
        parallel_config=SimpleNamespace(
            decode_context_parallel_size=1, prefill_context_parallel_size=1, tensor_parallel_size=1
        ),
        scheduler_config=SimpleNamespace(
            disable_hybrid_kv_cache_manager=False, max_num_batched_tokens=8192, max_num_encoder_input_tokens=8192
        ),
        attention_config=SimpleNamespace(hisparse_config=None),
        device_config=SimpleNamespace(device_type="cuda"),
        speculative_config=None,
        kv_transfer_config=None,
        max_in_flight_tokens=16384,
        max_concurrent_batches=2,
        num_prefill_lookahead_tokens=0,
    )


def plan(config, workers, available):
    """Run this release's planner and return the blocks that all workers take."""
    if hasattr(planner, "get_global_kv_cache_groups"):
        groups = planner.get_global_kv_cache_groups(config, workers)
        configs = planner.get_kv_cache_configs(config, workers, available, groups)
    elif hasattr(planner, "get_kv_cache_configs"):
        configs = planner.get_kv_cache_configs(config, workers, available)
    else:
        configs = [planner.get_kv_cache_config(config, *worker) for worker in zip(workers, available, strict=True)]
        planner.unify_kv_cache_configs(configs)
    shared = min(configs, key=lambda each: each.num_blocks)
    if hasattr(utilities, "get_kv_cache_capacity"):
        shared = utilities.generate_scheduler_kv_cache_config(configs)
        tokens, concurrency = utilities.get_kv_cache_capacity(config, shared)
        logging.getLogger("vllm").info(
            "KV cache size: %s tokens, Maximum concurrency for 1 tokens per request: %.2fx", f"{tokens:,}", concurrency
        )
    return shared.num_blocks


def answer(question, heard):
    """Return the figures of one question."""
    stages, block_size, max_model_len, override = question
    workers, first = [], 0
    for layers, kv_heads, head_size, element_bytes, _ in stages:
        spec = full_attention(block_size, kv_heads, head_size, element_bytes)
        workers.append({f"layers.{first + index}.attn": spec for index in range(layers)})
        first += layers
    config, heard.text = config_of(block_size, max_model_len, override), ""
    try:
        blocks = plan(config, workers, [stage[4] for stage in stages])
    except ValueError as error:
        kind = next((kind for text, kind in REFUSALS.items() if text in str(error)), str(error))
        estimate = LINES["estimate"].search(str(error))
        return [kind, int(estimate.group(1)) if estimate else 0]
    tokens, concurrency = (LINES[name].findall(heard.text) for name in ("tokens", "concurrency"))
    smallest = min((int(text.replace(",", "")) for text in tokens), default=None)
    return [blocks, smallest, min(map(float, concurrency), default=None), config.model_config.max_model_len]


def main():
    """Answer every question of stdin."""
    heard = Heard()
    logger = logging.getLogger("vllm")
    logger.handlers = [heard]
    logger.setLevel(logging.INFO)
    planner.logger.info_once = lambda text, *values, **_: planner.logger.info(text, *values)
    if hasattr(planner, "KVCacheSpecRegistry"):
        planner.KVCacheSpecRegistry.check_kv_cache_spec_registry = lambda *_, **__: None
    with os.fdopen(ANSWERS, "w") as answers:
        json.dump([answer(question, heard) for question in json.load(sys.stdin)], answers)


if __name__ == "__main__":
    main()
