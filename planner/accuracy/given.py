"""Reads boots handed over as JSON lines (one boot a line, `observed` beside what was asked for) into `Boot`."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from planner.catalog.boots import Boot, PerRank, read_fact
from planner.core.engine import Version
from planner.core.errors import BadInput

_OUTCOMES = {
    "ok": "booted",
    "refused": "refused",
    "oom_at_boot": "out_of_memory_at_boot",
    "oom": "out_of_memory_under_load",
    "oom_under_load": "out_of_memory_under_load",
    "hang": "hung",
    "crash": "crashed",
}
UNCLEAR = "unclear"
_ASKED = {
    "vllm_version": "vllm",
    "model": "model",
    "gpu": "gpu",
    "gpu_count": "gpus",
    "tp": "tp",
    "pp": "pp",
    "dp": "dp",
    "gpu_memory_utilization": "utilization",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "kv_cache_dtype": "kv_cache_dtype",
    "quantization": "quantization",
    "dtype": "dtype",
    "block_size": "block_size",
    "enforce_eager": "enforce_eager",
    "enable_prefix_caching": "prefix_caching",
    "cpu_offload_gb": "cpu_offload_gb",
}
_COUNTS = {"num_gpu_blocks": "num_gpu_blocks", "num_cpu_blocks": "num_cpu_blocks", "max_concurrency": "max_concurrency"}
_CONSUMED_SINCE = Version(0, 27, 1)
_PARTITION = re.compile(r"VLLM_PP_LAYER_PARTITION=([\d,]+)")
_OFFLOADED = re.compile(r"kv[-_]offloading[-_]size[= ]([\d.]+)")
_FREE = re.compile(r"[Ff]ree memory(?: on device \S+)? \(?([\d.]+)/([\d.]+) GiB|free at (?:start|boot) ([\d.]+)")
_OVERRIDE = re.compile(r"num[-_]gpu[-_]blocks[-_]override[= ](\d+)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_OFFLINE = re.compile(r"LLM\(|vllm bench (?:throughput|latency)")


def read_boots(path: Path) -> tuple[Boot, ...]:
    """Return the boots of a file of JSON lines; raises BadInput naming the file and line of the first fault."""
    boots = []
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            boots.append(_read_line(line, f"{path.name}, line {number}"))
    return tuple(boots)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise BadInput(field="paths", message=f"{path} cannot be read ({fault}).", fix="name a file of boots") from None


def _read_line(line: str, where: str) -> Boot:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as fault:
        raise BadInput(
            field="paths", message=f"{where} is not JSON ({fault.msg}).", fix="give one boot a line"
        ) from None
    if not isinstance(row, dict) or not row.get("outcome") or not isinstance(row.get("observed") or {}, dict):
        raise BadInput(
            field="paths",
            message=f"{where} is not a boot: `observed` and `outcome` are needed.",
            fix=f"outcomes are {', '.join(_OUTCOMES)}; any other counts for no verdict",
        )
    return boot_from_row(row)


def boot_from_row(row: Mapping[str, Any]) -> Boot:
    """Return one row as a Boot: what the row infers fills gaps and is marked as assumed."""
    observed, inferred = row.get("observed") or {}, row.get("inferred") or {}
    asked, assumed = _asked(row, inferred)
    tokens = "storable_tokens" if row["outcome"] == "refused" else "kv_tokens"
    facts: dict[str, Any] = {
        "id": str(row.get("id", "")),
        "source": str(row.get("source", "")),
        "outcome": _OUTCOMES.get(row["outcome"], UNCLEAR),
        "failure": _failure(row),
        "confidence": str(row.get("confidence") or ""),
        "tier": str(row.get("use_tier") or ""),
        "assumed": assumed,
        **asked,
        **_flags(row),
        **_measured(row, observed, inferred, str(asked.get("vllm", ""))),
        **{name: _fact(name, observed.get(key)) for key, name in _COUNTS.items()},
        tokens: _fact(tokens, observed.get("kv_cache_tokens")),
    }
    return Boot(**facts)


def _asked(row: Mapping[str, Any], inferred: Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    asked: dict[str, Any] = {}
    assumed = set()
    for key, name in _ASKED.items():
        value = row.get(key)
        if inferred.get(key) is not None and (value is None or key == "gpu"):
            value = inferred[key]
            assumed.add(name)
        fact = _fact(name, value)
        if fact is not None:
            asked[name] = fact
    for name in ("vllm", "gpu", "model"):
        if name in assumed:
            asked[name] = re.sub(r"\s*\(.*", "", str(asked[name]))
    return asked, frozenset(assumed)


def _fact(name: str, value: Any) -> Any:
    """A value as its field in `Boot` takes it: equal ones of a list are one, numbers may come as text; else None."""
    values = value if isinstance(value, list) else [value]
    distinct = {str(part) for part in values if part is not None}
    if len(distinct) != 1:
        return None
    text = distinct.pop()
    for spelling in (text.lower() if text in ("True", "False") else text, text.removesuffix(".0")):
        with suppress(ValueError):
            return read_fact(name, spelling)
    return None


def _text(row: Mapping[str, Any]) -> str:
    return " ".join(str(row.get(key) or "") for key in ("command", "other_args", "error_gist", "notes"))


def _flags(row: Mapping[str, Any]) -> dict[str, Any]:
    command, others = str(row.get("command") or ""), str(row.get("other_args") or "")
    override = _OVERRIDE.search(f"{command} {others}")
    draft = row.get("speculative_config")
    return {
        "command": command,
        "flags": _bare_flags(others),
        "command_told": bool(command) or "non-default args" in others,
        "speculative_config": json.dumps(draft) if isinstance(draft, dict) else str(draft or ""),
        "ep": str(row.get("ep") or "").lower(),
        "kv_offloading_gib": _offloaded(f"{command} {others}"),
        "pp_layer_partition": _partition(f"{command} {others}"),
        "lora": "lora" in f"{command} {others} {row.get('error_gist') or ''}".lower(),
        "draft_model": bool(row.get("speculative_config")) or "draft model" in str(row.get("error_gist") or ""),
        "sleep_mode": "sleep mode" in others or "enable-sleep-mode" in command,
        "model_impl": "transformers" if "model-impl transformers" in f"{command} {others}" else "",
        "usage": "offline" if _OFFLINE.search(command) else "server",
        "num_gpu_blocks_override": int(override[1]) if override else None,
    }


def _bare_flags(others: str) -> str:
    """Words beside the command, without a list of what was printed."""
    return "" if "non-default args" in others else others


def _partition(text: str) -> str:
    found = _PARTITION.search(text)
    return found[1] if found else ""


def _offloaded(text: str) -> float | None:
    found = _OFFLOADED.search(text)
    return float(found[1]) if found else None


def _failure(row: Mapping[str, Any]) -> str:
    gist = str(row.get("error_gist") or "")
    if re.search(r"local rank .* out of bounds", gist):
        return "data_parallel_rank"
    if _FREE.search(gist):
        return "free_memory"
    if "LoRA" in gist:
        return "lora"
    return "other_process" if re.search(r"other process|same GPU", gist) else ""


def _per_rank(value: Any) -> PerRank:
    if value is None:
        return ()
    parts = value if isinstance(value, list) else [value]
    return tuple(float(part) for part in parts if part is not None and _NUMBER.fullmatch(str(part)))


def _measured(
    row: Mapping[str, Any], observed: Mapping[str, Any], inferred: Mapping[str, Any], version: str
) -> dict[str, PerRank]:
    details = row.get("terms_detail") or {}
    late = _is_late(version) or "consumed" in str(row.get("notes") or "")
    weights, loading = _per_rank(observed.get("weights_gib")), _per_rank(observed.get("model_loading_gib"))
    change_only = "free-memory change" in str(row.get("notes") or "")
    graphs = _per_rank(observed.get("graph_capture_gib"))
    return {
        "total_gib": _per_rank(observed.get("total_gpu_gib")),
        "free_at_start_gib": _free_at_start(row, details),
        "weights_gib": loading if late else weights or loading,
        "consumed_gib": weights if late else (),
        "activation_gib": () if late else _per_rank(observed.get("activation_peak_gib")),
        "activation_with_graphs_gib": _per_rank(observed.get("activation_peak_gib")) if late else (),
        "non_torch_gib": _per_rank(observed.get("non_torch_gib")) or _per_rank(inferred.get("non_torch_gib")),
        "graphs_gib": () if change_only else graphs,
        "graphs_estimated_gib": _per_rank(details.get("graph_estimate_gib") or inferred.get("graph_estimate_gib")),
        "available_kv_gib": _per_rank(observed.get("available_kv_gib")),
    }


def _is_late(version: str) -> bool:
    try:
        return Version.parse(version) >= _CONSUMED_SINCE
    except BadInput:
        return False


def _free_at_start(row: Mapping[str, Any], details: Mapping[str, Any]) -> PerRank:
    refused = _FREE.search(str(row.get("error_gist") or ""))
    if refused:
        return _per_rank(refused[1] or refused[3])
    snapshot = (details.get("init") or {}).get("free_memory")
    noted = _FREE.search(str(row.get("notes") or ""))
    return _per_rank(snapshot) or _per_rank(noted and (noted[1] or noted[3]))


def read_all(paths: Iterable[Path]) -> tuple[Boot, ...]:
    """Return the boots of several files in order."""
    return tuple(boot for path in paths for boot in read_boots(path))
