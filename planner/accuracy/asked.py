"""The command of a published boot, as far as its source states it."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress

from planner.accuracy.variants import is_named_quantised
from planner.catalog.boots import Boot
from planner.catalog.flags import flags
from planner.core.engine import EngineArgs, Version
from planner.core.errors import BadInput
from planner.core.model import Model
from planner.readers.command import read_fields

AUTO_LENGTH = -1
LIMITS = "limit_mm_per_prompt"
ONLINE = re.compile(r"^(fp8)\b(?!.*marlin)", re.IGNORECASE)
_ENVIRONMENT = re.compile(r"\b(VLLM_\w+)=([\w.,+-]+)")
_FLAG = re.compile(r"--(?P<name>[A-Za-z][\w.-]*)(?:[= ](?P<value>'[^']*'|\"[^\"]*\"|\{.*?\}|(?!-)[^\s]+))?")
_COUNTS = re.compile(r"(image|video|audio)\W{0,3}(\d+)")


def engine_args(boot: Boot, model: Model, version: Version) -> EngineArgs:
    """Return what a boot asked for: its stated fields over the flags of its command; unknown flags are left out."""
    given = {**_told(boot), **_stated(boot, model)}
    known = {name: value for name, value in given.items() if _is_read(name, value, version)}
    environment = dict(environment_of(boot))
    return read_fields(known, version=version, model=boot.model, environment=environment)


def _is_read(name: str, value: object, version: Version) -> bool:
    try:
        read_fields({name: value}, version=version, model="any")
    except BadInput:
        return False
    return True


def environment_of(boot: Boot) -> tuple[tuple[str, str], ...]:
    """Return the vLLM variables that were set."""
    pairs = dict(_ENVIRONMENT.findall(f"{boot.command} {boot.flags}"))
    if boot.pp_layer_partition:
        pairs["VLLM_PP_LAYER_PARTITION"] = boot.pp_layer_partition
    if boot.model_runner:
        pairs["VLLM_USE_V2_MODEL_RUNNER"] = "1" if boot.model_runner == "v2" else "0"
    return tuple(pairs.items())


def _stated(boot: Boot, model: Model) -> Mapping[str, object]:
    fields = {
        "usage": boot.usage,
        "dtype": _unless_auto(boot.dtype),
        "tensor_parallel_size": boot.tp,
        "pipeline_parallel_size": boot.pp,
        "data_parallel_size": boot.dp,
        "gpu_memory_utilization": boot.utilization,
        "max_model_len": "auto" if boot.max_model_len == AUTO_LENGTH else boot.max_model_len,
        "max_num_seqs": boot.max_num_seqs,
        "max_num_batched_tokens": boot.max_num_batched_tokens,
        "kv_cache_dtype": _unless_auto(boot.kv_cache_dtype),
        "quantization": quantised_at_load(boot, model),
        "block_size": boot.block_size if boot.block_size and not model.traits.has_states else None,
        "enforce_eager": boot.enforce_eager,
        "enable_prefix_caching": boot.prefix_caching,
        "enable_expert_parallel": True if boot.ep.lower() in ("true", "1", "on") else None,
        "num_gpu_blocks_override": boot.num_gpu_blocks_override,
        "kv_cache_memory_bytes": boot.kv_cache_memory_bytes,
        "decode_context_parallel_size": boot.decode_context_parallel_size,
        "cpu_offload_gb": boot.cpu_offload_gb,
        "kv_offloading_size": boot.kv_offloading_gib,
        "language_model_only": boot.language_model_only or None,
        "load_format": boot.load_format or None,
        "speculative_config": speculative_config(boot),
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _unless_auto(text: str) -> str:
    return "" if text == "auto" else text


def quantised_at_load(boot: Boot, model: Model) -> str:
    """Return the name to quantise an unquantised checkpoint by while it loads, or ""."""
    online = ONLINE.match(boot.quantization)
    plain = model.quantization is None and not is_named_quantised(boot.model)
    return online[1].lower() if online and plain else ""


def speculative_config(boot: Boot) -> str:
    """Return the drafter as JSON, from words such as `mtp n=3` or `DFlash2 k=7`; "" without one."""
    text = boot.speculative_config
    if not text or text.startswith("{"):
        return text
    word = re.match(r"[A-Za-z]\w*", text)
    method = word[0].lower() if word else "draft_model"
    tokens = re.search(r"(?:n|k|tokens)\s*[= ]\s*(\d+)|[,-]\s*(\d+)(?: tokens)?$", text)
    stated: dict[str, object] = {"method": method if "_" in method else method.rstrip("0123456789")}
    if tokens:
        stated["num_speculative_tokens"] = int(tokens[1] or tokens[2])
    return json.dumps(stated)


def _told(boot: Boot) -> Mapping[str, object]:
    """Return the flags of a command line that may be an excerpt, and of words beside it."""
    told = {match["name"].replace("-", "_"): _bare(match["value"]) for match in _FLAG.finditer(boot.command)}
    told.update(_beside(boot.flags))
    found: dict[str, object] = {}
    for name, value in told.items():
        if name.startswith("no_") and name[3:] in flags():
            found[name[3:]] = False
        elif name in flags() and name != "model":
            found[name] = _value(name, value)
    return found


def _bare(value: str | None) -> str:
    with suppress(ValueError):
        return " ".join(shlex.split(value or ""))
    return value or ""


def _beside(words: str) -> Iterator[tuple[str, str]]:
    for clause in re.split(r";\s*", words):
        name, _, value = clause.strip().lstrip("-").partition("=" if re.match(r"[\w-]+=", clause.strip()) else " ")
        yield name.replace("-", "_"), value.strip()


def _value(name: str, value: str) -> object:
    if name == LIMITS and not value.startswith("{"):
        return json.dumps({modality: int(count) for modality, count in _COUNTS.findall(value)})
    return True if value == "" or flags()[name].kind in ("bool", "switch") else value
