"""Real vLLM as judge of models that see or hear: the bytes of a rank with its towers, whole, split or left out."""

import pytest

from planner.core.tower_use import TowerUse
from tests.engine.judged import CANNOT_DIVIDE, ours, vllms
from tests.engine.shapes_towers import TOWERS

BYTES = ("dtype", "max_model_len", "parameter_bytes", "buffer_bytes", "refused")
LIMITED = {"image": 0, "video": 0, "audio": 0}


def sizes(answer):
    """The caches of each layer are judged elsewhere."""
    return {key: answer[key] for key in BYTES if key in answer}


@pytest.mark.parametrize(("tp", "pp", "rank"), [(4, 1, 3), (2, 2, 3)])
@pytest.mark.parametrize("name", TOWERS)
def test_every_planned_tower_is_built_as_planned(engine, name, tp, pp, rank):
    place = {"tp": tp, "pp": pp, "rank": rank}
    assert sizes(ours(TOWERS[name], **place)) == sizes(vllms(engine, TOWERS[name], **place))


@pytest.mark.parametrize("name", TOWERS)
def test_the_data_mode_keeps_whole_what_vllm_keeps_whole(engine, name):
    config, flags = TOWERS[name], {"mm_encoder_tp_mode": "data"}
    assert sizes(ours(config, tp=4, towers=TowerUse(whole=True))) == sizes(vllms(engine, config, tp=4, flags=flags))


@pytest.mark.parametrize("name", TOWERS)
def test_a_limit_of_no_items_leaves_out_what_vllm_leaves_out(engine, name):
    config, towers = TOWERS[name], TowerUse(left_out=frozenset(LIMITED))
    assert sizes(ours(config, tp=2, towers=towers)) == sizes(
        vllms(engine, config, tp=2, flags={"limit_mm_per_prompt": LIMITED})
    )


def test_a_tower_that_does_not_divide_is_refused_alike(engine):
    vision = {**TOWERS["qwen2.5-vl"]["vision_config"], "intermediate_size": 702}
    config = {**TOWERS["qwen2.5-vl"], "vision_config": vision}
    assert sizes(ours(config, tp=4)) == {"refused": CANNOT_DIVIDE} == sizes(vllms(engine, config, tp=4))
