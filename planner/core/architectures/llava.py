"""LLaVA and its kin: CLIP, SigLIP or Pixtral beside whichever language model, through a small projector.

Source: vLLM 0.32 `models.llava`, `models.llava_next`, `models.llava_onevision`, `models.paligemma`, `models.idefics3`.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType

from planner.core.architectures.pixtral import feature_depth, pixtral
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Tower
from planner.core.errors import Unknown
from planner.core.modules import Module, Tensor
from planner.core.siglip import clip, siglip
from planner.core.tower import Wrapper, down, tower_keys, up, whole

CLIP, SIGLIP = "clip_vision_model", "siglip_vision_model"
_plain = partial(whole, may_quantise=False)
_LANGUAGES: Mapping[str, str] = MappingProxyType(
    {
        "llama": "LlamaForCausalLM",
        "mistral": "MistralForCausalLM",
        "qwen2": "Qwen2ForCausalLM",
        "qwen3": "Qwen3ForCausalLM",
        "gemma": "GemmaForCausalLM",
        "gemma2": "Gemma2ForCausalLM",
    }
)


def _encoder(prefix: str, kind: str, vision: ConfigKeys, layers: int) -> Iterator[Module]:
    """Return the layers up to the one whose features are used; the norm after the last is never among them."""
    match kind:
        case "clip_vision_model":
            return clip(f"{prefix}.vision_model", vision, layers=layers, post_norm=False)
        case "siglip_vision_model":
            return siglip(f"{prefix}.vision_model", vision, layers=layers, post_norm=False)
        case "pixtral":
            return pixtral(prefix, vision, layers)
    raise Unknown(
        field="vision_config.model_type",
        message=f"unknown architecture: a tower of type {kind} is not planned yet.",
        fix="plan a model whose tower is CLIP, SigLIP or Pixtral",
    )


def _tower(modules: tuple[Module, ...], vision: ConfigKeys, limited_by: tuple[str, ...]) -> tuple[Tower, ...]:
    tower = Tower(
        modality="image",
        modules=modules,
        limited_by=limited_by,
        hidden_size=vision.required_size("hidden_size"),
        intermediate_size=vision.required_size("intermediate_size"),
        num_heads=vision.required_size("num_attention_heads"),
    )
    return (tower,)


def llava(
    keys: ConfigKeys,
    decoder: Decoder,
    *,
    kind: str = CLIP,
    feature_layer: int = -2,
    newline: bool = False,
    splits_projector: bool = True,
    limited_by: tuple[str, ...] = ("image",),
) -> tuple[Tower, ...]:
    """Return the tower, cut after the features that are used, and a projector of two layers."""
    vision = tower_keys(keys, "vision_config", kind)
    kind, width = vision.text("model_type") or kind, vision.required_size("hidden_size")
    depth = feature_depth(keys, vision.required_size("num_hidden_layers"), default=feature_layer)
    bias = not keys.has("multimodal_projector_bias") or keys.flag("multimodal_projector_bias")
    first, second = (up, down) if splits_projector else (_plain, _plain)
    modules = (
        *_encoder("vision_tower", kind, vision, depth),
        first("multi_modal_projector.linear_1", width, decoder.hidden_size, bias=bias),
        second("multi_modal_projector.linear_2", decoder.hidden_size, decoder.hidden_size, bias=bias),
    )
    tower = _tower(modules, vision, limited_by)
    return (*tower, _newline(decoder)) if newline else tower


def _newline(decoder: Decoder) -> Tower:
    """One vector that ends a row of an image; it stays where the tower is left out."""
    newline = Tensor(name="image_newline", elements=decoder.hidden_size)
    return Tower(modality="image", modules=(newline,), limited_by=())


def paligemma(keys: ConfigKeys, _: Decoder) -> tuple[Tower, ...]:
    """Return SigLIP to its end and one whole layer after it."""
    vision = tower_keys(keys, "vision_config", SIGLIP)
    width = vision.required_size("hidden_size")
    outputs = vision.required_size("projection_dim")
    projector = whole("multi_modal_projector.linear", width, outputs, may_quantise=False)
    return _tower((*siglip("vision_tower.vision_model", vision), projector), vision, ("image",))


def idefics3(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return a SigLIP without buffers, and a connector over patches merged by `scale_factor` on each side."""
    vision = tower_keys(keys, "vision_config", "idefics3_vision")
    merged = vision.required_size("hidden_size") * (keys.size("scale_factor") or 2) ** 2
    tower = (m for m in siglip("model.vision_model", vision) if not (isinstance(m, Tensor) and m.is_buffer))
    connector = whole("model.connector.modality_projection.proj", merged, decoder.hidden_size, bias=False)
    return _tower((*tower, connector), vision, ("image",))


_NAMES = (
    ("model.language_model.", "language_model.model."),
    ("model.vision_tower.", "vision_tower."),
    ("model.multi_modal_projector.", "multi_modal_projector."),
    ("model.image_newline", "image_newline"),
    ("lm_head.", "language_model.lm_head."),
)
_llava = partial(Wrapper, language="LlamaForCausalLM", languages=_LANGUAGES, hf_to_vllm=_NAMES)

WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "LlavaForConditionalGeneration": _llava(model_type="llava", towers=llava, left_out_since="0.10.1"),
        "LlavaNextForConditionalGeneration": _llava(model_type="llava_next", towers=partial(llava, newline=True)),
        "LlavaOnevisionForConditionalGeneration": _llava(
            model_type="llava_onevision",
            towers=partial(
                llava,
                kind=SIGLIP,
                feature_layer=-1,
                newline=True,
                splits_projector=False,
                limited_by=("image", "video"),
            ),
        ),
        "PaliGemmaForConditionalGeneration": Wrapper(
            model_type="paligemma",
            language="GemmaForCausalLM",
            languages={"gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM"},
            towers=paligemma,
            hf_to_vllm=_NAMES,
        ),
        "Idefics3ForConditionalGeneration": Wrapper(
            model_type="idefics3",
            language="LlamaForCausalLM",
            towers=idefics3,
            prefix="model.text_model.layers",
            supports_pp=False,
        ),
    }
)
