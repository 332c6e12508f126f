"""Which towers a command loads, and whether a rank holds its share of one or all of it."""

import json
from collections.abc import Iterator, Mapping

from planner.core.decoder import Decoder, Tower
from planner.core.engine import EngineArgs, Version
from planner.core.errors import Unknown
from planner.core.json_flags import json_flag
from planner.core.modules import Module
from planner.core.tower_use import TowerUse

LIMITS = "limit_mm_per_prompt"
DATA_MODE = "data"
OLD_DATA_MODE = "enable_multimodal_encoder_data_parallel"


def tower_use(args: EngineArgs) -> TowerUse:
    """Return what a command says of towers.

    Raises Unknown for `--mm-encoder-only`, BadInput for limits that are no JSON object. Source: vLLM
    `MultiModalConfig.get_limit_per_prompt`, `config.model` (0.10.1 to 0.33).
    """
    if args.asks("mm_encoder_only"):
        raise Unknown(
            field="mm_encoder_only",
            message="an instance that runs the encoder alone is not planned.",
            fix="drop --mm-encoder-only to plan the whole model",
        )
    return TowerUse(
        left_out=frozenset(name for name, limit in json_flag(args, LIMITS).items() if _count(limit) == 0),
        everything_left_out=args.asks("language_model_only"),
        whole=args.setting("mm_encoder_tp_mode") == DATA_MODE or args.asks(OLD_DATA_MODE),
        profiled=not args.asks("skip_mm_profiling"),
    )


def _count(limit: object) -> object:
    """A limit is a number, or an object with its count and the sizes to profile with."""
    return limit.get("count") if isinstance(limit, Mapping) else limit


def loaded_towers(decoder: Decoder, use: TowerUse, *, version: Version | None = None) -> tuple[Tower, ...]:
    """Return the towers that are loaded: an image tower serves videos too, so both limits must be 0 to leave it out."""
    return tuple(tower for tower in decoder.towers if not _is_left_out(tower, use, version))


def _is_left_out(tower: Tower, use: TowerUse, version: Version | None) -> bool:
    if not tower.limited_by or not _holds(tower.left_out_since, version):
        return False
    return use.everything_left_out or use.left_out.issuperset(tower.limited_by)


def _holds(since: str, version: Version | None) -> bool:
    return bool(since) and (version is None or version >= Version.parse(since))


def _require_derived(tower: Tower, version: Version | None) -> None:
    if not tower.underived:
        return
    limits = json.dumps(dict.fromkeys(tower.limited_by, 0))
    leaves_out = f"leave it out with --limit-mm-per-prompt '{limits}'"
    raise Unknown(
        field=tower.underived,
        message=f"unknown architecture: the size of the {tower.modality} tower is not derived.",
        fix=leaves_out if _holds(tower.left_out_since, version) else "plan a model of another family",
    )


def ranks_of(tower: Tower, use: TowerUse, *, tensor_parallel_size: int, version: Version | None = None) -> int:
    """Return how many ranks share one copy of a tower: all of TP, or one where each holds it whole."""
    indivisible = tower.num_heads % tensor_parallel_size != 0
    if (use.whole and _holds(tower.whole_since, version)) or (indivisible and tower.whole_if_indivisible):
        return 1
    return tensor_parallel_size


def tower_modules(
    decoder: Decoder, use: TowerUse, *, tensor_parallel_size: int, is_first: bool, version: Version | None = None
) -> Iterator[tuple[Tower, int, Module]]:
    """Return what one rank of a stage holds of the towers: the tower, the ranks that share it, the module."""
    for tower in loaded_towers(decoder, use, version=version):
        _require_derived(tower, version)
        ranks = ranks_of(tower, use, tensor_parallel_size=tensor_parallel_size, version=version)
        if is_first or tower.on_every_stage:
            yield from ((tower, ranks, module) for module in tower.modules)
