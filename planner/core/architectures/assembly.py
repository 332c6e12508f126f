"""From the layers of a language model to the whole: what stands before them, after them and on every stage."""

from collections.abc import Iterable
from dataclasses import replace

from planner.core.cache_layer import Cache
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Ends, Layer
from planner.core.grouped_attention import Heads
from planner.core.model_scope import unknown
from planner.core.modules import Module, Table, norm
from planner.core.rope import Rope


def layer_of(modules: Iterable[Module], *caches: Cache, ropes: tuple[Rope, ...] = ()) -> Layer:
    """Return one decoder layer; `ropes` where not all layers of the model read the same rotary tables."""
    return Layer(modules=tuple(modules), caches=caches, ropes=ropes)


def layer_norms(hidden_size: int, count: int = 2) -> Module:
    """Return the norms of one layer over the hidden state."""
    return norm("norms", hidden_size, vectors=count)


def plain_ends(
    keys: ConfigKeys,
    *,
    embedding: str = "embed_tokens",
    norm_vectors: int = 1,
    head_bias: bool = False,
    tied: bool | None = None,
) -> Ends:
    """Return an embedding for the first stage, a final norm and a head for the last."""
    rows, width = keys.required_size("vocab_size"), keys.required_size("hidden_size")
    is_tied = keys.flag("tie_word_embeddings") if tied is None else tied
    return Ends(
        first=(Table(name=embedding, rows=rows, width=width),),
        last=(
            norm("final norm", width, vectors=norm_vectors),
            Table(name="lm_head", rows=rows, width=width, bias=head_bias, tied=is_tied),
        ),
    )


def moved_everywhere(ends: Ends, *names: str) -> Ends:
    """Return the ends with those of these names on every stage, as some classes of vLLM build them."""
    return replace(
        ends,
        first=tuple(module for module in ends.first if module.name not in names),
        last=tuple(module for module in ends.last if module.name not in names),
        every=(*ends.every, *(module for module in (*ends.first, *ends.last) if module.name in names)),
    )


def assemble(
    keys: ConfigKeys,
    layers: Iterable[Layer],
    *,
    width: int,
    heads: Heads,
    ends: Ends | None = None,
    ropes: Iterable[Rope] = (),
    everywhere: bool = False,
    supports_pp: bool = True,
    ties: bool = True,
    experts_on_every_stage: bool = False,
) -> Decoder:
    """Return the decoder; `width` is that of its dense MLP, or of its experts. `everywhere` is of both ends.

    `ties` is False for a class of vLLM that never ties its head to the embedding, whatever the config says.
    """
    return Decoder(
        hidden_size=keys.required_size("hidden_size"),
        intermediate_size=width,
        vocab_size=keys.required_size("vocab_size"),
        num_attention_heads=heads.queries,
        num_kv_heads=heads.kv,
        head_dim=heads.size,
        layers=tuple(layers),
        ends=ends or plain_ends(keys, tied=None if ties else False),
        ropes=tuple(dict.fromkeys(ropes)),
        tie_word_embeddings=ties and keys.flag("tie_word_embeddings"),
        both_ends_everywhere=everywhere,
        supports_pp=supports_pp,
        experts_on_every_stage=experts_on_every_stage,
    )


def model_window(keys: ConfigKeys) -> int | None:
    """Return the window that holds for every layer of a class that sets none itself; 0 is none.

    Source: vLLM `EngineArgs.create_engine_config` (CacheConfig.sliding_window): only without `layer_types`, or where
    they all say so.
    """
    layers = keys.value("layer_types")
    if layers is not None and not (
        isinstance(layers, list | tuple) and all(kind == "sliding_attention" for kind in layers)
    ):
        return None
    return None if keys.value("sliding_window") == 0 else keys.size("sliding_window")


def require_untied(keys: ConfigKeys) -> None:
    """Raise Unknown for a tied head where vLLM's class would build the embedding twice and tie nothing."""
    if keys.flag("tie_word_embeddings"):
        raise unknown("tie_word_embeddings", "a tied head is not planned yet for this family.")
