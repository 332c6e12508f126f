"""Whisper: an audio encoder, and a decoder that attends to it.

Source: vLLM 0.32 `models.whisper`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from planner.core.cache_layer import AttentionCache
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Architecture, Decoder, Ends, Layer, Tower
from planner.core.modules import Linear, Module, Shard, Table, kv_scales
from planner.core.tower import blocks, convolution, down, layer_norm, merged_qkv, table, up

CONVOLUTION_TAPS = 3
_NAMES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "decoder_layers",
    "num_attention_heads": "decoder_attention_heads",
    "intermediate_size": "decoder_ffn_dim",
}


def build(keys: ConfigKeys) -> Decoder:
    """Return the decoder, whose vocabulary every rank holds whole, with the encoder as its tower."""
    width, heads = keys.required_size("hidden_size"), keys.required_size("num_attention_heads")
    vocabulary = keys.required_size("vocab_size")
    return Decoder(
        hidden_size=width,
        intermediate_size=keys.required_size("intermediate_size"),
        vocab_size=vocabulary,
        num_attention_heads=heads,
        num_kv_heads=heads,
        head_dim=width // heads,
        layers=(_layer(keys, width, heads),) * keys.required_size("num_hidden_layers"),
        ends=Ends(
            first=(
                table("model.decoder.embed_tokens", vocabulary, width),
                table("model.decoder.embed_positions", keys.required_size("max_target_positions"), width),
            ),
            last=(
                layer_norm("final norm", width),
                Table(name="lm_head", rows=vocabulary, width=width, tied=True),
            ),
        ),
        tie_word_embeddings=True,
        towers=(_encoder(keys, width),),
        layer_prefix="model.decoder.layers",
        supports_pp=False,
        is_encoder_decoder=True,
    )


def _layer(keys: ConfigKeys, width: int, heads: int) -> Layer:
    """A layer keeps keys and values of its own tokens, and of the encoder's."""
    own = AttentionCache(num_heads=heads, kv_heads=heads, head_dim=width // heads)
    crossing = AttentionCache(num_heads=heads, kv_heads=heads, head_dim=width // heads, kind="cross")
    return Layer(
        modules=tuple(_decoder_modules(width, keys.required_size("intermediate_size"))), caches=(own, crossing)
    )


def _decoder_modules(width: int, intermediate: int) -> Iterator[Module]:
    yield from _self_attention("self_attn", width)
    yield kv_scales("self_attn.attn")
    yield up("encoder_attn.q_proj", width, width)
    shards = (Shard(name="k_proj", outputs=width), Shard(name="v_proj", outputs=width))
    yield Linear(name="encoder_attn.kv_proj", inputs=width, shards=shards, bias=True)
    yield down("encoder_attn.out_proj", width, width)
    yield layer_norm("encoder_attn_layer_norm", width)
    yield kv_scales("encoder_attn.attn")
    yield from _mlp("", width, intermediate)


def _self_attention(name: str, width: int) -> Iterator[Module]:
    yield merged_qkv(f"{name}.qkv_proj", width, width)
    yield down(f"{name}.out_proj", width, width)
    yield layer_norm(f"{name}_layer_norm", width)


def _mlp(prefix: str, width: int, intermediate: int) -> Iterator[Module]:
    yield up(f"{prefix}mlp.fc1", width, intermediate)
    yield down(f"{prefix}mlp.fc2", intermediate, width)
    yield layer_norm(f"{prefix}final_layer_norm", width)


def _encoder(keys: ConfigKeys, width: int) -> Tower:
    positions = keys.required_size("max_source_positions")
    return Tower(
        modality="audio",
        modules=tuple(
            whisper_encoder(
                "model.encoder",
                width=width,
                intermediate=keys.required_size("encoder_ffn_dim"),
                layers=keys.required_size("encoder_layers"),
                mel_bins=keys.required_size("num_mel_bins"),
                positions=positions,
            )
        ),
        limited_by=("audio",),
        left_out_since="0.15",
        max_tokens_per_item=positions,
        patches_per_token=1,
        hidden_size=width,
        intermediate_size=keys.required_size("encoder_ffn_dim"),
        num_heads=keys.required_size("encoder_attention_heads"),
    )


def whisper_encoder(
    prefix: str, *, width: int, intermediate: int, layers: int, mel_bins: int, positions: int
) -> Iterator[Module]:
    """Return the encoder: two convolutions over the spectrum, learned positions and plain layers."""

    def block(name: str) -> Iterator[Module]:
        yield from _self_attention(f"{name}.self_attn", width)
        yield from _mlp(f"{name}.", width, intermediate)

    yield convolution(f"{prefix}.conv1", mel_bins, width, CONVOLUTION_TAPS)
    yield convolution(f"{prefix}.conv2", width, width, CONVOLUTION_TAPS)
    yield from blocks(f"{prefix}.layers", layers, block)
    yield layer_norm(f"{prefix}.layer_norm", width)
    yield table(f"{prefix}.embed_positions", positions, width)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {"WhisperForConditionalGeneration": Architecture(model_type="whisper", build=build, names=_NAMES)}
)
