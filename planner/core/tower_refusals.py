"""Layouts that vLLM does not build because a tower cannot be divided."""

from collections.abc import Iterator

from planner.core.decoder import Tower
from planner.core.engine import Version
from planner.core.layout import Layout
from planner.core.loaded_towers import loaded_towers, ranks_of
from planner.core.model import Model
from planner.core.modules import Linear, Module, Split
from planner.core.terms import Reason
from planner.core.tower_use import EVERY_TOWER, TowerUse


def tower_refusals(
    model: Model, layout: Layout, *, towers: TowerUse = EVERY_TOWER, version: Version | None = None
) -> tuple[Reason, ...]:
    """Return why vLLM would not split a model's towers over this layout.

    Source: vLLM `distributed.utils.divide`, as the tower's attention and its linear layers call it (0.8.5 to 0.33).
    """
    held = loaded_towers(model.decoder, towers, version=version)
    tp = layout.tensor_parallel_size
    ranks = ((tower, ranks_of(tower, towers, tensor_parallel_size=tp, version=version)) for tower in held)
    return tuple(reason for tower, shared in ranks if (reason := _refusal(tower, shared, version)) is not None)


def _refusal(tower: Tower, ranks: int, version: Version | None) -> Reason | None:
    sizes = ((f"{tower.num_heads} heads", tower.num_heads), *_divided(tower.modules))
    what = next((text for text, size in sizes if size % ranks), "")
    if not what:
        return None
    return Reason(
        rule="tower_tp",
        field="tensor_parallel_size",
        message=f"the {tower.modality} tower's {what} are not divisible by tensor_parallel_size {ranks}.",
        remedy=_remedy(tower, version),
    )


def _remedy(tower: Tower, version: Version | None) -> str:
    smaller = "choose a smaller tensor-parallel size"
    keeps_whole = tower.whole_since and (version is None or version >= Version.parse(tower.whole_since))
    if keeps_whole:
        return f"{smaller}, or keep the tower whole on every rank with --mm-encoder-tp-mode data"
    return f"{smaller}, or leave the tower out with --limit-mm-per-prompt" if tower.left_out_since else smaller


def _divided(modules: tuple[Module, ...]) -> Iterator[tuple[str, int]]:
    for module in modules:
        if isinstance(module, Linear) and module.split is Split.ROW:
            yield f"{module.inputs:,} inputs of {module.name}", module.inputs
        elif isinstance(module, Linear) and module.split is Split.COLUMN:
            yield from ((f"{shard.outputs:,} outputs of {module.name}", shard.outputs) for shard in module.shards)
