"""The estimate's document as OpenAPI components, taken from the arithmetic's own types so that the two cannot part."""

from copy import deepcopy
from typing import Any

import msgspec

from planner.core.cache_plan import CacheGroup
from planner.core.capacity import Capacity
from planner.core.engine import ResolvedArgs
from planner.core.free_memory import FreeMemory
from planner.core.host_memory import HostMemory
from planner.core.slack import Slack
from planner.core.terms import Reason, Term

Schema = dict[str, Any]
_PARTS = (CacheGroup, Capacity, FreeMemory, HostMemory, ResolvedArgs, Slack, Reason, Term)
_REFERENCE = "#/components/schemas/{name}"
VERDICTS = ["fits", "does_not_fit", "refused", "unknown"]


def ref(name: str) -> Schema:
    """Return a reference to a component."""
    return {"$ref": _REFERENCE.format(name=name)}


def document_components() -> dict[str, Schema]:
    """Return the components that `Document` is made of, itself among them."""
    _, parts = msgspec.json.schema_components(_PARTS, ref_template=_REFERENCE)
    term, engine = parts["Term"], parts.pop("ResolvedArgs")
    _add(term, exact={"type": "boolean"})
    _add(engine, version=_TEXT, assumed_newest={"type": "boolean"})
    ours = {"Engine": engine, "Rank": _RANK, "KvCache": _KV_CACHE, "Change": _CHANGE, "Document": _DOCUMENT}
    return {**parts, **deepcopy(ours)}  # the maker of the schema changes what it is given


def _add(component: Schema, **properties: Schema) -> None:
    component["properties"] |= properties
    component["required"] = [*component["required"], *properties]


_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_RANK = _object(
    rank=_WHOLE,
    pp_stage=_WHOLE,
    tp_rank=_WHOLE,
    total_bytes=_WHOLE,
    requested_bytes=_WHOLE,
    terms=_list(ref("Term")),
)
_KV_CACHE = _object(
    **dict.fromkeys(
        (
            *("available_bytes", "low_bytes", "high_bytes", "bytes_per_token", "bytes_per_token_per_rank"),
            *("bytes_per_block", "blocks_per_request"),
            *("block_size", "num_gpu_blocks", "low_blocks", "high_blocks", "tokens", "low_tokens", "high_tokens"),
            *("max_model_len", "binding_rank"),
        ),
        _WHOLE,
    ),
    groups=_list(ref("CacheGroup")),
    max_concurrency=_NUMBER,
    formula=_TEXT,
    why=_TEXT,
)
_CHANGE = _object(
    flag=_TEXT,
    value={},
    label=_TEXT,
    requests_at_once=_WHOLE,
    requests_now=_WHOLE,
    tokens=_WHOLE,
    gain=_NUMBER,
    note=_TEXT,
)
_MODEL = _object(name=_TEXT, architecture=_TEXT, parameters=_WHOLE)
_GPU = _object(
    slug=_TEXT,
    name=_TEXT,
    count=_or_null(_WHOLE),
    total_bytes=_WHOLE,
    total_low_bytes=_WHOLE,
    total_high_bytes=_WHOLE,
)
_DOCUMENT = {
    **_object(
        verdict={"type": "string", "enum": VERDICTS},
        summary=_TEXT,
        core_version=_TEXT,
        model=_or_null(_MODEL),
        gpu=_or_null(_GPU),
        reasons=_list(ref("Reason")),
        warnings=_list(ref("Reason")),
        engine=_or_null(ref("Engine")),
        ranks=_list(ref("Rank")),
        kv_cache=_or_null(ref("KvCache")),
        capacity=_or_null(ref("Capacity")),
        slack=_or_null(ref("Slack")),
        host=_or_null(ref("HostMemory")),
        free=_or_null(ref("FreeMemory")),
        help=_or_null(_list(ref("Change"))),
    ),
    "description": "A verdict and everything behind it; sizes in bytes. An exact term has low = bytes = high.",
}
