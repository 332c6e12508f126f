"""Ask a real vLLM what a command comes to on a GPU that is not there: a question a line in, an answer a line out.

    PYTHONPATH=TRITON:TORCHVISION PYTHON_OF_THE_ENGINE tests/engine/ask_config.py < questions

vLLM's own configuration code resolves the flags; see emulated_cuda.py for the device. A question has `config` (a
config.json), `flags` (names and values of `EngineArgs`), `gpu` [name, GiB, [major, minor]], `usage` (server or
offline), `environment` and `gpus` (how many there are). An answer is what became of the flags, or how vLLM refused.
"""

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.update(
    HF_HUB_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    VLLM_NO_USAGE_STATS="1",
    VLLM_LOGGING_LEVEL="CRITICAL",
    EMULATED_CAPABILITY="9.0",
)
ANSWERS = os.dup(1)
os.dup2(2, 1)  # whatever the engine prints is no answer

emulated_cuda = importlib.import_module("emulated_cuda")
emulated_cuda.emulate()
torch = importlib.import_module("torch")
platforms = importlib.import_module("vllm.platforms")
DeviceCapability = importlib.import_module("vllm.platforms.interface").DeviceCapability
EngineArgs = importlib.import_module("vllm.engine.arg_utils").EngineArgs
UsageContext = importlib.import_module("vllm.usage.usage_lib").UsageContext
registry = importlib.import_module("vllm.model_executor.models.registry")
transformers = importlib.import_module("transformers")
known_configs = importlib.import_module("vllm.transformers_utils.config")
for module in ("vllm.triton_utils.importing", "vllm.triton_utils", "vllm.config.vllm"):
    importlib.import_module(module).HAS_TRITON = True
registry._run_in_subprocess = lambda inspect: inspect()
USAGES = {"server": UsageContext.OPENAI_API_SERVER, "offline": UsageContext.LLM_CLASS}


def become(name, gib, capability, count):
    """Make the emulated device the one of the question."""
    platform = type(platforms.current_platform)
    answers = {
        "get_device_name": name,
        "get_device_total_memory": int(gib * (1 << 30)),
        "get_device_capability": DeviceCapability(*capability),
        "device_count": count,
    }
    for method, value in answers.items():
        setattr(platform, method, classmethod(lambda cls, device_id=0, _value=value: _value))
    torch.cuda.get_device_capability = lambda *_, **__: tuple(capability)
    torch.cuda.get_device_name = lambda *_, **__: name


def write_config(config, folder):
    """Write config.json; a class that the checkpoint would ship with it is stood in for by one that holds the keys."""
    config = {key: value for key, value in config.items() if key != "auto_map"}
    model_type = config["model_type"]
    if model_type not in transformers.CONFIG_MAPPING and model_type not in known_configs._CONFIG_REGISTRY:
        shipped = type("Shipped", (transformers.PretrainedConfig,), {"model_type": model_type, "attribute_map": {}})
        transformers.AutoConfig.register(model_type, shipped)
    (Path(folder) / "config.json").write_text(json.dumps(config))


def resolved(question):
    """Return what vLLM makes of the question's flags."""
    become(*question["gpu"], question.get("gpus", 8))
    os.environ.update(question.get("environment") or {})
    with tempfile.TemporaryDirectory() as folder:
        write_config(question["config"], folder)
        args = EngineArgs(model=folder, load_format="dummy", skip_tokenizer_init=True, **question["flags"])
        config = args.create_engine_config(usage_context=USAGES[question.get("usage", "server")])
    compilation, scheduler, cache = config.compilation_config, config.scheduler_config, config.cache_config
    return {
        "dtype": str(config.model_config.dtype).removeprefix("torch."),
        "quantization": config.model_config.quantization,
        "max_model_len": config.model_config.max_model_len,
        "max_num_seqs": scheduler.max_num_seqs,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "enable_chunked_prefill": scheduler.enable_chunked_prefill,
        "async_scheduling": scheduler.async_scheduling,
        "enable_prefix_caching": cache.enable_prefix_caching,
        "gpu_memory_utilization": cache.gpu_memory_utilization,
        "kv_cache_dtype": cache.cache_dtype,
        "mamba_cache_mode": cache.mamba_cache_mode,
        "mamba_ssm_cache_dtype": cache.mamba_ssm_cache_dtype,
        "disable_hybrid_kv_cache_manager": scheduler.disable_hybrid_kv_cache_manager,
        "cudagraph_mode": compilation.cudagraph_mode.name,
        "cudagraph_capture_sizes": list(compilation.cudagraph_capture_sizes or ()),
        "model_runner": "v2" if config.use_v2_model_runner else "v1",
        "max_concurrent_batches": config.max_concurrent_batches,
    }


def answer(question):
    """Return the answer, or how vLLM refused."""
    try:
        return resolved(question)
    except BaseException as error:  # noqa: BLE001 - every way to refuse is the answer here
        return {"refused": type(error).__name__, "text": str(error)}


def main():
    """Answer every line of stdin, each in a process of its own: vLLM keeps what it has once resolved."""
    for line in sys.stdin:
        question = json.loads(line)
        if os.fork() == 0:
            os.write(ANSWERS, (json.dumps(answer(question)) + "\n").encode())
            os._exit(0)
        os.wait()


if __name__ == "__main__":
    main()
