"""The towers of Gemma 3 (SigLIP) and Gemma 4 (its own, which vLLM takes from transformers).

Source: vLLM 0.32 `models.gemma3_mm`, `models.siglip`, `models.gemma4_mm`, transformers 5.19 `models.gemma4`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from planner.core.architectures.gemma4_audio import gemma4_audio
from planner.core.config_keys import ConfigKeys
from planner.core.decoder import Decoder, Tower
from planner.core.modules import Module, Tensor
from planner.core.siglip import siglip
from planner.core.tower import Wrapper, blocks, frequencies, rms_norm, tower_keys, whole

GEMMA3_TOKENS = 256
GEMMA4_VIDEO_TOKENS = 32 * (70 + 2 + 6)  # frames x (soft tokens, their two ends, the time)
QUANTISABLE_MULTIPLE = 64
LINEARS_WITH_BOUNDS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
MLP_LINEARS = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")


def gemma3(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return Gemma 3's SigLIP tower and its projector, a plain parameter."""
    vision = tower_keys(keys, "vision_config", "siglip_vision_model")
    width, tokens = vision.required_size("hidden_size"), keys.size("mm_tokens_per_image") or GEMMA3_TOKENS
    projector = (
        Tensor(name="multi_modal_projector.mm_input_projection_weight", elements=width * decoder.hidden_size),
        rms_norm("multi_modal_projector.mm_soft_emb_norm", width),
    )
    tower = Tower(
        modality="image",
        limited_by=("image",),
        modules=(*siglip("vision_tower.vision_model", vision), *projector),
        max_tokens_per_item=tokens,
        patches_per_token=(vision.required_size("image_size") // vision.required_size("patch_size")) ** 2 // tokens,
        hidden_size=width,
        intermediate_size=vision.required_size("intermediate_size"),
        num_heads=vision.required_size("num_attention_heads"),
    )
    return (tower,)


def gemma4(keys: ConfigKeys, decoder: Decoder) -> tuple[Tower, ...]:
    """Return Gemma 4's towers, whole on every rank: it sees, and the small ones hear."""
    vision = tower_keys(keys, "vision_config", "gemma4_vision")
    seeing = Tower(
        modality="image",
        modules=tuple(_gemma4_vision(vision, decoder)),
        max_tokens_per_item=keys.size("vision_soft_tokens_per_image"),
        patches_per_token=(vision.size("pooling_kernel_size") or 1) ** 2,
        hidden_size=vision.required_size("hidden_size"),
        intermediate_size=vision.required_size("intermediate_size"),
    )
    return (seeing, gemma4_audio(keys, decoder)) if keys.has("audio_config") else (seeing,)


def _gemma4_vision(vision: ConfigKeys, decoder: Decoder) -> Iterator[Module]:
    width, head_dim = vision.required_size("hidden_size"), vision.required_size("head_dim")
    yield Tensor(
        name="vision_tower.patch_embedder.position_embedding_table",
        elements=2 * vision.required_size("position_embedding_size") * width,
    )
    pixels = 3 * vision.required_size("patch_size") ** 2
    may_quantise = _may_quantise(vision)
    yield whole("vision_tower.patch_embedder.input_proj", pixels, width, bias=False, may_quantise=may_quantise)
    yield from blocks(
        "vision_tower.encoder.layers",
        vision.required_size("num_hidden_layers"),
        lambda name: _gemma4_block(name, vision),
    )
    yield frequencies("vision_tower.encoder.rotary_emb", head_dim // 2, copies=2)
    if vision.flag("standardize"):
        yield Tensor(name="vision_tower.std", elements=2 * width, is_buffer=True)
    yield whole("embed_vision.embedding_projection", width, decoder.hidden_size, bias=False, may_quantise=may_quantise)


def _may_quantise(keys: ConfigKeys) -> bool:
    """Whether a tower's widths suit the quantisation kernels."""
    sizes = (keys.required_size("hidden_size"), keys.required_size("intermediate_size"))
    return all(size % QUANTISABLE_MULTIPLE == 0 for size in sizes)


def _gemma4_block(name: str, vision: ConfigKeys) -> Iterator[Module]:
    width, head_dim = vision.required_size("hidden_size"), vision.required_size("head_dim")
    queries = vision.required_size("num_attention_heads") * head_dim
    values = vision.required_size("num_key_value_heads") * head_dim
    intermediate = vision.required_size("intermediate_size")
    attention = ((width, queries), (width, values), (width, values), (queries, width))
    shapes = (*attention, (width, intermediate), (width, intermediate), (intermediate, width))
    may_quantise = _may_quantise(vision)
    for linear, (inputs, outputs) in zip((*LINEARS_WITH_BOUNDS, *MLP_LINEARS), shapes, strict=True):
        yield whole(f"{name}.{linear}.linear", inputs, outputs, bias=False, may_quantise=may_quantise)
    if vision.flag("use_clipped_linears"):
        yield Tensor(name=f"{name}.bounds", elements=4 * len(shapes), is_buffer=True)
    yield Tensor(name=f"{name}.self_attn.norms", elements=2 * head_dim)
    yield Tensor(name=f"{name}.norms", elements=4 * width)


def _gemma3_items(keys: ConfigKeys) -> int:
    return keys.size("mm_tokens_per_image") or GEMMA3_TOKENS


def _gemma4_items(keys: ConfigKeys) -> int | None:
    """A video is the largest item (vLLM `gemma4_mm.Gemma4ProcessingInfo.get_mm_max_tokens_per_item`)."""
    return GEMMA4_VIDEO_TOKENS if keys.value("use_bidirectional_attention") == "vision" else None


WRAPPERS: Mapping[str, Wrapper] = MappingProxyType(
    {
        "Gemma3ForConditionalGeneration": Wrapper(
            model_type="gemma3",
            language="Gemma3ForCausalLM",
            towers=gemma3,
            whole_items=_gemma3_items,
            hf_to_vllm=(
                ("model.language_model.", "language_model.model."),
                ("model.vision_tower.", "vision_tower."),
                ("model.multi_modal_projector.", "multi_modal_projector."),
                ("lm_head.", "language_model.lm_head."),
            ),
        ),
        "Gemma4ForConditionalGeneration": Wrapper(
            model_type="gemma4",
            language="Gemma4ForCausalLM",
            towers=gemma4,
            whole_items=_gemma4_items,
            hf_to_vllm=(
                ("model.vision_tower", "vision_tower"),
                ("model.embed_vision", "embed_vision"),
                ("model.audio_tower.", "audio_tower."),
                ("model.embed_audio.", "embed_audio."),
                ("model.language_model.", "language_model.model."),
                ("lm_head.", "language_model.lm_head."),
                ("model", "language_model.model"),
            ),
            first="0.19",
        ),
    }
)
