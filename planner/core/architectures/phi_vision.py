"""Phi-3-vision and Phi-3.5-vision: CLIP in its large form beside a Llama.

Source: vLLM 0.32 `models.phi3v`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Tower
from planner.core.modules import Module, Table, Tensor
from planner.core.siglip import clip
from planner.core.tower import Wrapper, whole

PREFIX = "model.vision_embed_tokens"
CLIP_LARGE_336: Mapping[str, object] = MappingProxyType(
    {
        "hidden_size": 1024,
        "image_size": 336,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_channels": 3,
        "num_hidden_layers": 24,
        "patch_size": 14,
    }
)
FEATURES_OF_LAYER = -2
MERGED_PATCHES = 4
LARGEST_IMAGE_TOKENS = 2509


def phi3v(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return the tower, to which vLLM counts an embedding of its own beside the language model's."""
    vision = ConfigKeys(CLIP_LARGE_336, {}, {})
    processor = keys.mapping("img_processor") or {}
    tower = Tower(
        modality="image",
        modules=tuple(_modules(vision, processor, decoder)),
        limited_by=("image",),
        max_tokens_per_item=LARGEST_IMAGE_TOKENS,
        hidden_size=vision.required_size("hidden_size"),
        intermediate_size=vision.required_size("intermediate_size"),
        num_heads=vision.required_size("num_attention_heads"),
    )
    return (tower,)


def _modules(vision: ConfigKeys, processor: Mapping[str, object], decoder: Decoder) -> Iterator[Module]:
    index = processor.get("layer_idx", FEATURES_OF_LAYER)
    layer = index if isinstance(index, int) else FEATURES_OF_LAYER
    layers = vision.required_size("num_hidden_layers") + layer + 1 if layer < 0 else layer + 1
    merged = MERGED_PATCHES * vision.required_size("hidden_size")
    yield Table(name="model.embed_tokens", rows=decoder.vocab_size, width=decoder.hidden_size)
    yield from clip(f"{PREFIX}.img_processor.vision_model", vision, layers=layers)
    yield Tensor(name=f"{PREFIX}.separators", elements=2 * merged)
    for name, inputs in (("img_projection.0", merged), ("img_projection.2", decoder.hidden_size)):
        yield whole(f"{PREFIX}.{name}", inputs, decoder.hidden_size, may_quantise=False)


WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "Phi3VForCausalLM": Wrapper(
            model_type="phi3_v",
            language="LlamaForCausalLM",
            towers=phi3v,
            prefix="model.layers",
            hf_to_vllm=(
                ("model.vision_embed_tokens.wte", "embed_tokens"),
                ("model.vision_embed_tokens.", "vision_embed_tokens."),
                ("lm_head.", "language_model.lm_head."),
                ("model.", "language_model.model."),
            ),
        ),
    }
)
