"""The dimensions of a decoder, read from config.json by the rules of its family."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.core.config_keys import ConfigKeys
from planner.core.errors import BadInput
from planner.core.family import Family, KvHeads, Norms, Positions, QkNorm
from planner.core.model_scope import unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The dimensions that decide a decoder's parameters, and which optional ones it has."""

    hidden_size: int
    intermediate_size: int
    vocab_size: int
    embedding_size: int
    num_attention_heads: int
    num_kv_heads: int
    head_dim: int
    learned_positions: int
    norms_per_layer: int
    norm_vectors: int
    final_norm: bool
    qkv_bias: bool
    o_bias: bool
    mlp_bias: bool
    qk_norm: QkNorm


def read_shape(keys: ConfigKeys, family: Family) -> Shape:
    """Return the dimensions of the decoder; raises BadInput where they contradict each other."""
    hidden = keys.required_size("hidden_size")
    heads = keys.required_size("num_attention_heads")
    norm_vectors = family.norm_vectors if _fact(keys, family.norm_affine) else 0
    return Shape(
        hidden_size=hidden,
        intermediate_size=_intermediate_size(keys, family, hidden),
        vocab_size=keys.required_size("vocab_size"),
        embedding_size=(keys.size("word_embed_proj_dim") or hidden) if family.projected_embedding else hidden,
        num_attention_heads=heads,
        num_kv_heads=_num_kv_heads(keys, family, heads),
        head_dim=_head_dim(keys, family, hidden, heads),
        learned_positions=_learned_positions(keys, family),
        norms_per_layer=_norms_per_layer(keys, family),
        norm_vectors=norm_vectors,
        final_norm=not family.projected_embedding or _opt_has_final_norm(keys),
        qkv_bias=_fact(keys, family.qkv_bias),
        o_bias=_fact(keys, family.o_bias),
        mlp_bias=_fact(keys, family.mlp_bias),
        qk_norm=family.qk_norm if _fact(keys, family.qk_norm_if) else QkNorm.NONE,
    )


def _fact(keys: ConfigKeys, fact: bool | str) -> bool:
    return keys.any_flag(fact) if isinstance(fact, str) else fact


def _intermediate_size(keys: ConfigKeys, family: Family, hidden: int) -> int:
    """The families without such a key are four times as wide as the hidden state."""
    stated = keys.size("intermediate_size") if family.model_type not in ("bloom", "falcon") else None
    if stated is not None and family.halves_intermediate:
        return stated // 2
    return stated or (keys.required_size("intermediate_size") if family.gated_mlp else 4 * hidden)


def _num_kv_heads(keys: ConfigKeys, family: Family, heads: int) -> int:
    kv_heads = _KV_HEADS[family.kv_heads](keys, heads)
    if heads % kv_heads:
        key = keys.spelling("num_key_value_heads")
        message = f"{heads} attention heads cannot share {kv_heads} key-value heads evenly."
        raise BadInput(field=key, message=message, fix=f"give a divisor of {heads}")
    return kv_heads


def _falcon_kv_heads(keys: ConfigKeys, heads: int) -> int:
    if keys.flag("new_decoder_architecture"):
        return keys.size("num_kv_heads") or heads
    return 1 if keys.flag("multi_query") else heads


_KV_HEADS: Mapping[KvHeads, Callable[[ConfigKeys, int], int]] = {
    KvHeads.GROUPED: lambda keys, heads: keys.size("num_key_value_heads") or heads,
    KvHeads.MULTI_HEAD: lambda _, heads: heads,
    KvHeads.FALCON: _falcon_kv_heads,
    KvHeads.CHATGLM: lambda keys, heads: (
        keys.required_size("num_key_value_heads") if keys.flag("multi_query_attention") else heads
    ),
    KvHeads.BIGCODE: lambda keys, heads: 1 if keys.flag("multi_query") else heads,
}


def _head_dim(keys: ConfigKeys, family: Family, hidden: int, heads: int) -> int:
    stated = keys.size("head_dim")
    if stated is not None and family.free_head_dim:
        return stated
    if hidden % heads:
        message = f"hidden_size {hidden} is not a multiple of {heads} attention heads, and head_dim is not stated."
        raise BadInput(field="head_dim", message=message, fix="add head_dim, or correct hidden_size or the heads")
    if stated is not None and stated != hidden // heads:
        raise unknown("head_dim", f"head_dim {stated} beside hidden_size / heads = {hidden // heads} is not planned.")
    return hidden // heads


def _learned_positions(keys: ConfigKeys, family: Family) -> int:
    if family.positions is not Positions.LEARNED:
        return 0
    return keys.required_size("max_position_embeddings") + family.position_offset


def _norms_per_layer(keys: ConfigKeys, family: Family) -> int:
    if family.norms is Norms.POST_NORM:
        return 4 if keys.flag("use_post_norm") else 2
    if family.norms is Norms.FALCON and keys.flag("parallel_attn"):
        separate = keys.size("num_ln_in_parallel_attn") or (2 if keys.flag("new_decoder_architecture") else 1)
        return 2 if separate == 2 else 1
    return family.norms_per_layer


def _opt_has_final_norm(keys: ConfigKeys) -> bool:
    return keys.flag("do_layer_norm_before") and not keys.flag("_remove_final_layer_norm")
