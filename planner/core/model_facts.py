"""What a config.json of any architecture states, for display; nothing is assumed and nothing is refused."""

from collections.abc import Mapping
from dataclasses import dataclass

_SPELLINGS = {
    "num_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "intermediate_size": ("intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner"),
    "vocab_size": ("vocab_size", "padded_vocab_size"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "num_kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "head_dim": ("head_dim", "kv_channels"),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
    "sliding_window": ("sliding_window",),
    "num_experts": ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk"),
    "kv_lora_rank": ("kv_lora_rank",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The figures a config.json states (None where it does not), and why it cannot be planned ("" if it can)."""

    architecture: str | None
    model_type: str | None
    dtype: str | None
    quantization: str | None
    tie_word_embeddings: bool | None
    num_layers: int | None
    hidden_size: int | None
    intermediate_size: int | None
    vocab_size: int | None
    num_attention_heads: int | None
    num_kv_heads: int | None
    head_dim: int | None
    max_position_embeddings: int | None
    sliding_window: int | None
    num_experts: int | None
    experts_per_token: int | None
    kv_lora_rank: int | None
    parameters: int | None
    unplanned: str


def stated_facts(config: Mapping[str, object], *, parameters: int | None, unplanned: str) -> ModelFacts:
    """Return the facts that a config.json states, those of a nested `text_config` first."""
    nested = config.get("text_config")
    keys = {**config, **nested} if isinstance(nested, Mapping) else config
    sizes = {name: _size(keys, spellings) for name, spellings in _SPELLINGS.items()}
    tied = keys.get("tie_word_embeddings")
    return ModelFacts(
        architecture=_architecture(config) or _architecture(keys),
        model_type=_text(config.get("model_type")),
        dtype=_text(keys.get("dtype")) or _text(keys.get("torch_dtype")),
        quantization=_quantization(keys),
        tie_word_embeddings=tied if isinstance(tied, bool) else None,
        parameters=parameters,
        unplanned=unplanned,
        **sizes,
    )


def _size(keys: Mapping[str, object], spellings: tuple[str, ...]) -> int | None:
    stated = (keys.get(name) for name in spellings)
    return next((value for value in stated if isinstance(value, int) and not isinstance(value, bool)), None)


def _architecture(keys: Mapping[str, object]) -> str | None:
    names = keys.get("architectures")
    return _text(names[0]) if isinstance(names, list | tuple) and names else None


def _quantization(keys: Mapping[str, object]) -> str | None:
    settings = keys.get("quantization_config") or keys.get("compression_config")
    return _text(settings.get("quant_method")) if isinstance(settings, Mapping) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
