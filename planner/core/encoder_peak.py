"""What an encoder needs while vLLM profiles it: its widest layer for the largest items, and what stays until the end.

Source: vLLM `GPUModelRunner.profile_run`, `MultiModalBudget` (0.8.5 to 0.33).
"""

from dataclasses import dataclass

from planner.core.decoder import Tower
from planner.core.loaded_towers import loaded_towers, ranks_of
from planner.core.modules import Linear, parameters_of
from planner.core.situation import Situation

COLOURS = 3
MLP_BUFFERS = 2  # before and after the activation
TAKES_PATCHES = (
    "patch_embed.proj",
    "patch_conv",
    "patch_embedding",
    "patch_embedding.linear",
    "patch_embedder.input_proj",
)
HIDDEN_COPIES = 4  # residual, norm, queries and keys with their rotation; 3 to 4.4 on the boots that an encoder binds


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """The items that are profiled: how many, their tokens in the prompt, their patches in the tower."""

    tower: Tower
    items: int
    tokens: int
    patches: int


def encoding_of(situation: Situation) -> Encoding | None:
    """Return what is profiled: the largest items of the tower that gives the most tokens; None where nothing is.

    The budget is the batch or one item, whichever is larger; as many items as it holds are encoded at once.
    """
    if not situation.layout.is_first(situation.pp_stage) or not situation.args.towers.profiled:
        return None
    towers = loaded_towers(situation.model.decoder, situation.args.towers, version=situation.facts.version)
    sized = [(tower.max_tokens_per_item, tower) for tower in towers if tower.max_tokens_per_item]
    if not sized:
        return None
    most, tower = max(sized, key=lambda pair: pair[0])
    budget = max(situation.args.max_num_batched_tokens, most)
    items = budget // most
    return Encoding(tower=tower, items=items, tokens=items * most, patches=items * most * tower.patches_per_token)


def peak_bytes(situation: Situation, encoding: Encoding) -> int:
    """Return the encoder's own peak: pixels, the two widths of its MLP, and copies of its hidden states."""
    tower = encoding.tower
    ranks = ranks_of(
        tower,
        situation.args.towers,
        tensor_parallel_size=situation.layout.tensor_parallel_size,
        version=situation.facts.version,
    )
    width = MLP_BUFFERS * tower.intermediate_size // ranks + HIDDEN_COPIES * tower.hidden_size
    return _pixel_bytes(situation, encoding) + situation.element_bytes * encoding.patches * width


def held_bytes(situation: Situation, encoding: Encoding) -> int:
    """Return what stays while the language model is profiled: encoded tokens, in the first runner pixels too."""
    outputs = situation.element_bytes * encoding.tokens * situation.model.hidden_size
    pixels = _pixel_bytes(situation, encoding) if situation.args.model_runner == "v1" else 0
    return outputs + pixels


def _pixel_bytes(situation: Situation, encoding: Encoding) -> int:
    return situation.element_bytes * encoding.patches * _inputs_of_a_patch(encoding.tower)


def _inputs_of_a_patch(tower: Tower) -> int:
    """Return the numbers of one patch, told by the module that takes it in: three colours, and maybe a bias."""
    for module in tower.modules:
        if module.name.endswith(TAKES_PATCHES):
            inputs = module.inputs if isinstance(module, Linear) else parameters_of(module) // tower.hidden_size
            return inputs // COLOURS * COLOURS
    return 0
