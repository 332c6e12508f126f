"""Which config.json is planned as a dense decoder with full attention; anything else is named."""

from collections.abc import Mapping

from planner.core.config_keys import ConfigKeys
from planner.core.errors import BadInput, Unknown
from planner.core.family import Family

PLANNED = "give the config.json as the checkpoint has it, or plan a model of another family"
EXPERT_KEYS = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
TOWER_KEYS = ("vision_config", "audio_config", "visual", "vision_tower", "encoder_config", "mm_vision_tower")
STATE_KEYS = ("mamba_d_state", "ssm_cfg", "linear_attn_config", "layers_block_type", "hybrid_override_pattern")
OTHER_KEYS = {
    "kv_lora_rank": "latent (MLA) attention",
    "attention_chunk_size": "chunked attention",
    "dual_chunk_attention_config": "dual chunk attention",
    "block_configs": "layers of different shapes",
    "per_layer_config": "layers of different shapes",
    "num_kv_heads_per_layer": "layers of different shapes",
    "compress_ratios": "compressed attention",
    "rswa_window": "sliding windows",
    "interleaved_sliding_window": "windows by an older key",
}


def language_model(config: Mapping[str, object]) -> Mapping[str, object]:
    """Return the keys of the language model: those of a nested `text_config` over the outer ones."""
    nested = config.get("text_config")
    if nested is None:
        return config
    if not isinstance(nested, Mapping):
        raise BadInput(field="text_config", message="text_config is no object.", fix="correct it in config.json")
    outer = {key: value for key, value in config.items() if key != "text_config"}
    return {**outer, **nested, "architectures": config.get("architectures") or nested.get("architectures")}


def stated_architecture(config: Mapping[str, object]) -> str:
    """Return the first architecture that the config states, or ""."""
    stated = config.get("architectures")
    if stated is None or stated == []:
        return ""
    if isinstance(stated, list | tuple) and all(isinstance(name, str) for name in stated):
        return str(stated[0])
    raise BadInput(
        field="architectures",
        message=f"architectures is {stated!r}; it must be a list of names.",
        fix='give e.g. ["LlamaForCausalLM"]',
    )


def unknown_architecture(config: Mapping[str, object], architecture: str) -> Unknown:
    """Return the error for an architecture without a reader, naming the key that decides and what kind it seems."""
    name = architecture or str(config.get("model_type") or "none stated")
    kind = _kind_of(config)
    field = "architectures" if architecture else "model_type"
    return unknown(field, f"{name}{f' ({kind})' if kind else ''} is not planned yet.")


def require_planned(keys: ConfigKeys, family: Family) -> None:
    """Raise Unknown for the first key that makes this more than a dense decoder with full attention."""
    for name, kind in _kinds(keys.config):
        raise unknown(name, f"{kind} is not planned yet.")
    for name in family.unplanned_if:
        if keys.has(name) and keys.flag(name):
            raise unknown(name, f"{name} is not planned yet for this family.")


def _kind_of(config: Mapping[str, object]) -> str:
    return next((kind for _, kind in _kinds(config)), "")


def _kinds(config: Mapping[str, object]) -> list[tuple[str, str]]:
    """What the keys say beyond a dense decoder: (deciding key, kind), the plainest first."""
    found: list[tuple[str, str]] = []
    if config.get("is_encoder_decoder"):
        found.append(("is_encoder_decoder", "an encoder-decoder"))
    if config.get("is_causal") is False:
        found.append(("is_causal", "bidirectional attention"))
    found += [(key, "a vision or audio tower") for key in TOWER_KEYS if config.get(key)]
    found += [(key, "a mixture of experts") for key in EXPERT_KEYS if config.get(key)]
    found += [(key, "a state-space or linear attention") for key in STATE_KEYS if config.get(key)]
    found += [(key, kind) for key, kind in OTHER_KEYS.items() if config.get(key) is not None]
    if config.get("head_dtype") not in (None, "model"):
        found.append(("head_dtype", "a head of another dtype"))
    return found


def unknown(field: str, what: str) -> Unknown:
    """Return the error for a model that is not planned, naming the key of config.json that decides it."""
    return Unknown(field=field, message=f"unknown architecture: {what}", fix=PLANNED)
