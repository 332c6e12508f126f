"""The two image encoders that most towers are: SigLIP and CLIP, as vLLM builds them.

Source: vLLM 0.32 `models.siglip.SiglipVisionTransformer`, `models.clip.CLIPVisionTransformer`.
"""

from collections.abc import Iterator

from planner.core.config_keys import ConfigKeys
from planner.core.modules import Module, Tensor
from planner.core.tower import blocks, convolution, down, layer_norm, merged_qkv, table, up

QUANTISABLE_MULTIPLE = 64


def siglip(
    prefix: str, vision: ConfigKeys, *, layers: int | None = None, post_norm: bool | None = None
) -> Iterator[Module]:
    """Return SigLIP up to `layers` (None: all); its last norm is left out with the last layers, unless stated."""
    width, patches = vision.required_size("hidden_size"), _patches(vision)
    depth = vision.required_size("num_hidden_layers")
    yield _patch_convolution(f"{prefix}.embeddings.patch_embedding", vision, bias=True)
    yield table(f"{prefix}.embeddings.position_embedding", patches, width)
    yield _position_ids(prefix, patches)
    yield from encoder(f"{prefix}.encoder.layers", vision, depth if layers is None else layers)
    if post_norm if post_norm is not None else layers in (None, depth):
        yield layer_norm(f"{prefix}.post_layernorm", width)


def clip(
    prefix: str, vision: ConfigKeys, *, layers: int | None = None, post_norm: bool | None = None
) -> Iterator[Module]:
    """Return CLIP: as SigLIP, with a class token, a norm before the layers and patches without bias."""
    width, positions = vision.required_size("hidden_size"), _patches(vision) + 1
    depth = vision.required_size("num_hidden_layers")
    yield Tensor(name=f"{prefix}.embeddings.class_embedding", elements=width)
    yield _patch_convolution(f"{prefix}.embeddings.patch_embedding", vision, bias=False)
    yield table(f"{prefix}.embeddings.position_embedding", positions, width)
    yield _position_ids(prefix, positions)
    yield layer_norm(f"{prefix}.pre_layrnorm", width)
    yield from encoder(f"{prefix}.encoder.layers", vision, depth if layers is None else layers)
    if post_norm if post_norm is not None else layers in (None, depth):
        yield layer_norm(f"{prefix}.post_layernorm", width)


def encoder(prefix: str, vision: ConfigKeys, layers: int) -> Iterator[Module]:
    """Return the transformer layers that SigLIP and CLIP share."""
    width, intermediate = vision.required_size("hidden_size"), vision.required_size("intermediate_size")
    may_quantise = all(size % QUANTISABLE_MULTIPLE == 0 for size in (width, intermediate))

    def block(name: str) -> Iterator[Module]:
        yield merged_qkv(f"{name}.self_attn.qkv_proj", width, width)
        yield down(f"{name}.self_attn.out_proj", width, width)
        yield layer_norm(f"{name}.layer_norm1", width)
        yield up(f"{name}.mlp.fc1", width, intermediate, may_quantise=may_quantise)
        yield down(f"{name}.mlp.fc2", intermediate, width, may_quantise=may_quantise)
        yield layer_norm(f"{name}.layer_norm2", width)

    yield from blocks(prefix, layers, block)


def _patches(vision: ConfigKeys) -> int:
    side: int = vision.required_size("image_size") // vision.required_size("patch_size")
    return side**2


def _patch_convolution(name: str, vision: ConfigKeys, *, bias: bool) -> Module:
    kernel = vision.required_size("patch_size") ** 2
    channels = vision.required_size("num_channels")
    return convolution(name, channels, vision.required_size("hidden_size"), kernel, bias=bias)


def _position_ids(prefix: str, positions: int) -> Tensor:
    return Tensor(name=f"{prefix}.embeddings.position_ids", elements=positions, dtype="int64", is_buffer=True)
