"""Ask a real vLLM what it would load and cache: one JSON question a line on stdin, one JSON answer a line on stdout.

Runs inside the engine's own interpreter and never inside ours. vLLM is imported once; a question that builds a model is
answered in a forked child, because process groups and caches are globals. No weights are read and no device is needed:
the model is built on torch's `meta` device, as one rank of a process group whose peers do not exist.

Questions (`ask` names the kind):
  weights  config, tensor_parallel_size, pipeline_parallel_size, rank, dtype, environment, listing, device (`cpu` for
           the few models that compute with a weight while they are built)
  blocks   any layers and bytes, in the form of release_planner.py
  layers   config, tensor_parallel_size, pipeline_parallel_size, rank, and any flag in `flags`: what each layer caches
With EMULATED_CAPABILITY set ("9.0") the engine believes that it runs on such an NVIDIA GPU (see emulated_cuda.py).
An answer is what was asked for, or `refused` with the class and the text of vLLM's error.
"""

import dataclasses
import gc
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from enum import Enum
from pathlib import Path
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1",
    VLLM_NO_USAGE_STATS="1",
    VLLM_LOGGING_LEVEL="ERROR",
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
)

import stand_in_kernels
import stand_in_torchvision  # noqa: F401 - it stands in when it is imported

if os.environ.get("EMULATED_CAPABILITY"):
    import emulated_cuda

    emulated_cuda.emulate()

import release_planner
import torch
import transformers
from torch.overrides import TorchFunctionMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from vllm.config import get_layers_from_vllm_config, replace, set_current_vllm_config
from vllm.distributed import parallel_state
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.model_executor.models import registry
from vllm.platforms import current_platform
from vllm.transformers_utils import config as vllm_configs
from vllm.utils.torch_utils import set_default_torch_dtype
from vllm.v1.core import kv_cache_utils
from vllm.v1.kv_cache_interface import KVCacheSpec
from vllm.v1.worker import workspace
from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec
from vllm.v1.worker.gpu.spec_decode.eagle import utils as eagle_utils


class LoneRank(parallel_state.GroupCoordinator):
    """A member of a group whose peers were never started: it knows its place and cannot communicate."""

    def __init__(self, group_ranks: list[list[int]], local_rank: int, *_: object, **__: object) -> None:
        self.rank = torch.distributed.get_rank()
        self.ranks = next(ranks for ranks in group_ranks if self.rank in ranks)
        self.world_size, self.rank_in_group = len(self.ranks), self.ranks.index(self.rank)
        self.local_rank = self.device_index = local_rank
        self.device = torch.device("cpu")
        self.cpu_group = self.device_group = torch.distributed.new_group(self.ranks, backend="fake")
        self.device_communicator = self.mq_broadcaster = None
        self.use_device_communicator = False


@contextmanager
def one_rank_of(vllm_config: Any, *, rank: int) -> Iterator[None]:
    """Set vLLM's globals up as the given rank of the config's layout."""
    layout = vllm_config.parallel_config
    world_size = layout.tensor_parallel_size * layout.pipeline_parallel_size
    torch.distributed.init_process_group(backend="fake", store=FakeStore(), rank=rank, world_size=world_size)
    parallel_state.GroupCoordinator = LoneRank
    parallel_state._WORLD = LoneRank([list(range(world_size))], 0)
    parallel_state._NODE_COUNT = 1
    with set_current_vllm_config(vllm_config):
        parallel_state.initialize_model_parallel(layout.tensor_parallel_size, layout.pipeline_parallel_size)
        yield


class Keys(dict[str, Any]):
    """Nested keys of a config.json that remote code reads as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return Keys(self[name]) if isinstance(self[name], dict) else self[name]


def with_blocks(keys: dict[str, Any]) -> dict[str, Any]:
    """Return the keys with what each block holds readable as attributes."""
    return keys | {"block_configs": list(map(Keys, keys["block_configs"]))} if "block_configs" in keys else keys


def register_remote_config(config: dict[str, Any]) -> None:
    """Stand in for the configuration class that a checkpoint with remote code ships: it holds the keys as given."""
    model_type = config["model_type"]
    if model_type in transformers.CONFIG_MAPPING or model_type in vllm_configs._CONFIG_REGISTRY:
        return
    names = {"num_hidden_layers": "num_layers"} if "num_layers" in config else {}
    facts = {"model_type": model_type, "attribute_map": names, "tie_word_embeddings": False}
    facts |= {key: config[key] for key in ("max_position_embeddings",) if key in config}
    plain = type("RemoteConfig", (transformers.PretrainedConfig,), facts)
    as_given = plain.__init__
    plain.__init__ = lambda self, **keys: as_given(self, **with_blocks(keys))
    transformers.AutoConfig.register(model_type, plain)


def engine_config(question: dict[str, Any], folder: Path) -> Any:
    """Return vLLM's own resolved configuration for the question's config.json and flags."""
    register_remote_config(question["config"])
    (folder / "config.json").write_text(json.dumps(question["config"]))
    flags = {name: question[name] for name in ("dtype", "max_model_len", "kv_cache_dtype") if question.get(name)}
    return EngineArgs(
        model=str(folder),
        load_format="dummy",
        skip_tokenizer_init=True,
        enforce_eager=True,
        distributed_executor_backend="mp",
        tensor_parallel_size=question.get("tensor_parallel_size", 1),
        pipeline_parallel_size=question.get("pipeline_parallel_size", 1),
        **flags,
        **question.get("flags", {}),
    ).create_engine_config()


def unique_bytes(tensors: Iterator[torch.Tensor]) -> int:
    """Return the bytes of distinct tensors (a tied head is the embedding itself)."""
    return sum({id(t): t.numel() * t.element_size() for t in tensors}.values())


def buffers_of(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Yield the buffers that hold memory of their own: some are views of a parameter."""
    trained = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    return (buffer for buffer in model.buffers() if buffer.untyped_storage()._cdata not in trained)


def convert_in_place(module: torch.nn.Module, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> torch.nn.Module:
    """Take the place of `Module.to`: a tower that asks for the device stays on `meta`, with the dtype it asks for."""
    return module if dtype is None else module._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)


def drafter_of(target: torch.nn.Module, vllm_config: Any, owned: list[str]) -> torch.nn.Module | None:
    """Build the drafter that the flags ask for and let vLLM share what it shares; `owned` names its own tables."""
    speculation = vllm_config.speculative_config
    if speculation is None or speculation.draft_model_config is None:
        return None

    def build(*, vllm_config: Any, model_config: Any, prefix: str = "") -> torch.nn.Module:
        with set_default_torch_dtype(model_config.dtype), torch.device("meta"):
            drafter = initialize_model(vllm_config=vllm_config, model_config=model_config, prefix=prefix)
        for name in owned:
            setattr(drafter, f"has_own_{name}", True)
        return drafter

    if speculation.method == "draft_model":
        own = {"model_config": speculation.draft_model_config, "quant_config": None}
        return build(vllm_config=replace(vllm_config, **own), model_config=own["model_config"], prefix="draft_model")
    eagle_utils.get_model, torch.equal = build, lambda *_: False
    return eagle_utils.load_eagle_model(target, vllm_config)


def weights(question: dict[str, Any]) -> dict[str, Any]:
    """Build one rank of the model on `meta`; return the bytes it holds and what its attention layers cache."""
    os.environ.update(question.get("environment") or {})
    torch.nn.Module.to = convert_in_place
    with tempfile.TemporaryDirectory() as folder:
        vllm_config = engine_config(question, Path(folder))
        model_config = vllm_config.model_config
        with one_rank_of(vllm_config, rank=question.get("rank", 0)):
            with set_default_torch_dtype(model_config.dtype), torch.device(question.get("device", "meta")), unplaced():
                model = initialize_model(vllm_config=vllm_config, model_config=model_config)
            drafter = drafter_of(model, vllm_config, question.get("drafter_owns", []))
            specs = list(get_kv_cache_spec(vllm_config).values())
    answer = {
        "model_class": type(model).__name__,
        "dtype": str(model_config.dtype).removeprefix("torch."),
        "max_model_len": model_config.max_model_len,
        "parameter_bytes": unique_bytes(model.parameters()),
        "buffer_bytes": unique_bytes(buffers_of(model)),
        "kv": sorted({describe(spec) for spec in specs}),
        "kv_layers": len(specs),
    }
    if drafter is not None:
        known = {id(t) for t in (*model.parameters(), *model.buffers())}
        answer["drafter_class"] = type(drafter).__name__
        answer["drafter_parameter_bytes"] = unique_bytes(t for t in drafter.parameters() if id(t) not in known)
        answer["drafter_buffer_bytes"] = unique_bytes(t for t in drafter.buffers() if id(t) not in known)
    if question.get("listing"):
        answer["parameters"] = {name: list(p.shape) for name, p in model.named_parameters()}
        answer["drafter"] = {name: list(p.shape) for name, p in drafter.named_parameters()} if drafter else {}
        answer["buffers"] = {name: [str(b.dtype), *b.shape] for name, b in model.named_buffers()}
    return answer


def layers(question: dict[str, Any]) -> dict[str, Any]:
    """Build one rank of the model on `meta`; return the cache of each layer as the planner gets it, in order."""
    os.environ.update(question.get("environment") or {})
    with tempfile.TemporaryDirectory() as folder:
        vllm_config = engine_config(question, Path(folder))
        model_config, cache_config = vllm_config.model_config, vllm_config.cache_config
        with one_rank_of(vllm_config, rank=question.get("rank", 0)):
            with set_default_torch_dtype(model_config.dtype), torch.device("meta"), EverythingOnMeta():
                workspace.init_workspace_manager(torch.device("meta"))
                initialize_model(vllm_config=vllm_config, model_config=model_config)
            current_platform.update_block_size_for_backend(vllm_config)
            specs = get_kv_cache_spec(vllm_config)
            modules = get_layers_from_vllm_config(vllm_config, AttentionLayerBase)
    backends = {name: modules[name].get_attn_backend().get_name() for name in specs}
    return {
        "block_size": cache_config.block_size,
        "cache_dtype": cache_config.cache_dtype,
        "max_model_len": model_config.max_model_len,
        "layers": [[name, backends[name], facts_of(spec)] for name, spec in specs.items()],
    }


def facts_of(spec: KVCacheSpec) -> dict[str, Any]:
    """Return the fields of a cache that are set, under vLLM's names, with its kind and the bytes of a page."""
    fields = {field.name: getattr(spec, field.name) for field in dataclasses.fields(spec)}
    given = {name: written(value) for name, value in fields.items() if value is not None}
    return {"kind": type(spec).__name__, "page_size_bytes": spec.page_size_bytes, **given}


def written(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, bool | int | str) and not isinstance(value, Enum):
        return value
    if isinstance(value, list | tuple):
        return [written(item) for item in value]
    return value.name if isinstance(value, Enum) else str(value).removeprefix("torch.")


def unplaced() -> AbstractContextManager[Any]:
    """Return what keeps a model off the emulated GPU; nothing where none is emulated."""
    return EverythingOnMeta() if os.environ.get("EMULATED_CAPABILITY") else nullcontext()


class EverythingOnMeta(TorchFunctionMode):
    """What a model wants on the GPU goes to `meta` too."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if device is not None and not str(device).startswith(("meta", "cpu")):
            kwargs["device"] = "meta"
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        return function(*args, **kwargs)


def describe(spec: KVCacheSpec) -> tuple[str, int, int]:
    """Return the kind of a cache, its heads on this rank and their size."""
    return type(spec).__name__, getattr(spec, "num_kv_heads", 0), getattr(spec, "head_size", 0)


KINDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "weights": weights,
    "blocks": release_planner.answer,
    "layers": layers,
}
LEAVES_NO_TRACE = frozenset({"blocks"})


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer, or how vLLM refused."""
    try:
        return KINDS[question["ask"]](question)
    except Exception as error:  # noqa: BLE001 - every way to refuse is the answer here
        return {"refused": type(error).__name__, "text": str(error)}


def import_what_it_needs(question: dict[str, Any]) -> None:
    """Import the model's module here, once, and not in every child."""
    for architecture in question.get("config", {}).get("architectures") or ():
        with suppress(Exception):
            registry.ModelRegistry._try_load_model_cls(architecture)


def answer_in_child(question: dict[str, Any]) -> str:
    """Answer in a forked child and return its line; a child that dies says so."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as pipe:
            json.dump(answer(question), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        line = pipe.read()
    os.wait()
    return line or json.dumps({"refused": "Died", "text": "the child ended without an answer"})


def main() -> None:
    """Answer every line of stdin in order."""
    registry._run_in_subprocess = lambda inspect: inspect()  # a model class is inspected here, not in one more process
    kv_cache_utils.KVCacheSpecRegistry.check_kv_cache_spec_registry = lambda *_, **__: None
    torch.set_num_threads(1)
    stand_in_kernels.install()
    importlib.import_module("vllm.v1.attention.backends.cpu_attn")
    gc.freeze()
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # whatever the engine prints is no answer
        for line in sys.stdin:
            question = json.loads(line)
            import_what_it_needs(question)
            traceless = question["ask"] in LEAVES_NO_TRACE
            line = json.dumps(answer(question)) if traceless else answer_in_child(question)
            print(line, file=answers, flush=True)


if __name__ == "__main__":
    main()
