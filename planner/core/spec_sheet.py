"""What a model's page says of it: attention kind, KV bytes a token and weight bytes, by data type."""

from dataclasses import dataclass

from planner.core.kv_cache import StageKv
from planner.core.layout import Layout
from planner.core.model import Model
from planner.core.units import DTYPE_BYTES
from planner.core.weights import rank_weights

WEIGHT_DTYPES = ("bfloat16", "float32")
FP8_BYTES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecSheet:
    """Figures of a whole replica; every size in bytes."""

    attention_kind: str
    query_heads_per_kv_head: int
    kv_bytes_per_token: int
    kv_bytes_per_token_fp8: int
    bytes_per_full_request: int | None
    weight_bytes: tuple[tuple[str, int], ...]


def spec_sheet(model: Model) -> SpecSheet:
    """Return the figures of one plannable model; KV at its own data type and at fp8, weights on a single rank."""
    per_token = _kv_bytes_per_token(model, DTYPE_BYTES[model.dtype])
    longest = model.derived_max_model_len
    return SpecSheet(
        attention_kind=_attention_kind(model),
        query_heads_per_kv_head=model.num_attention_heads // model.num_kv_heads,
        kv_bytes_per_token=per_token,
        kv_bytes_per_token_fp8=_kv_bytes_per_token(model, FP8_BYTES),
        bytes_per_full_request=None if longest is None else longest * per_token,
        weight_bytes=tuple((dtype, _weight_bytes(model, dtype)) for dtype in WEIGHT_DTYPES),
    )


def _attention_kind(model: Model) -> str:
    if model.num_kv_heads == model.num_attention_heads:
        return "multi-head (MHA)"
    return "multi-query (MQA)" if model.num_kv_heads == 1 else "grouped-query (GQA)"


def _kv_bytes_per_token(model: Model, element_bytes: int) -> int:
    whole = StageKv(
        layers=model.num_layers,
        kv_heads=model.num_kv_heads,
        head_dim=model.head_dim,
        element_bytes=element_bytes,
        available_bytes=0,
    )
    return whole.bytes_per_token


def _weight_bytes(model: Model, dtype: str) -> int:
    alone = Layout(
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        data_parallel_size=1,
        layers_per_stage=(model.num_layers,),
    )
    return rank_weights(model, layout=alone, pp_stage=0, dtype=dtype).parameter_bytes
