"""What a model's page says of it: attention kind, KV bytes a token and weight bytes, by data type."""

from dataclasses import dataclass

from planner.core.attention_words import attention_kind
from planner.core.cache_bytes import bytes_per_request, bytes_per_token
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
    element_bytes = DTYPE_BYTES[model.dtype]
    longest = model.derived_max_model_len
    return SpecSheet(
        attention_kind=attention_kind(model.layers),
        query_heads_per_kv_head=model.num_attention_heads // max(1, model.num_kv_heads),
        kv_bytes_per_token=bytes_per_token(model.layers, element_bytes),
        kv_bytes_per_token_fp8=bytes_per_token(model.layers, FP8_BYTES),
        bytes_per_full_request=None if longest is None else bytes_per_request(model.layers, element_bytes, longest),
        weight_bytes=tuple((dtype, _weight_bytes(model, dtype)) for dtype in WEIGHT_DTYPES),
    )


def _weight_bytes(model: Model, dtype: str) -> int:
    alone = Layout(
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        data_parallel_size=1,
        layers_per_stage=(model.num_layers,),
    )
    return rank_weights(model, layout=alone, pp_stage=0, dtype=dtype).parameter_bytes
