"""Which towers a command loads, how TP divides them, and what is refused."""

import pytest

from planner.core.engine import EngineArgs, Version
from planner.core.errors import BadInput, Unknown
from planner.core.layout import Layout, pipeline_split
from planner.core.loaded_towers import loaded_towers, tower_use
from planner.core.model import model_from_config
from planner.core.tower_refusals import tower_refusals
from planner.core.tower_use import TowerUse
from planner.core.weights import rank_weights
from tests.engine.shapes_towers import TOWERS

NO_IMAGES = '{"image": 0}'
NO_IMAGES_OR_VIDEOS = '{"image": {"count": 0}, "video": 0}'


def flags(**given):
    return EngineArgs(other=tuple(given.items()))


def model(name, **keys):
    return model_from_config({**TOWERS[name], **keys}, name=name)


def layout(model, *, tp=1):
    return Layout(
        tensor_parallel_size=tp,
        pipeline_parallel_size=1,
        data_parallel_size=1,
        layers_per_stage=pipeline_split(model.num_layers, 1),
    )


def weight_bytes(name, *, tp=1, **given):
    asked = model(name)
    use = tower_use(flags(**given))
    return rank_weights(asked, layout=layout(asked, tp=tp), pp_stage=0, dtype="bfloat16", towers=use).parameter_bytes


@pytest.mark.parametrize(
    ("given", "loaded"),
    [
        ({}, 1),
        ({"limit_mm_per_prompt": NO_IMAGES}, 1),
        ({"limit_mm_per_prompt": NO_IMAGES_OR_VIDEOS}, 0),
        ({"limit_mm_per_prompt": '{"image": 4}'}, 1),
        ({"language_model_only": True}, 0),
    ],
)
def test_a_tower_stays_out_when_nothing_that_it_serves_may_come(given, loaded):
    assert len(loaded_towers(model("qwen2.5-vl").decoder, tower_use(flags(**given)))) == loaded


@pytest.mark.parametrize(("version", "loaded"), [("0.10.0", 1), ("0.10.1", 0)])
def test_before_0_10_1_the_tower_is_loaded_whatever_the_limit(version, loaded):
    use = tower_use(flags(limit_mm_per_prompt=NO_IMAGES_OR_VIDEOS))
    assert len(loaded_towers(model("qwen2.5-vl").decoder, use, version=Version.parse(version))) == loaded


def test_what_ends_a_row_of_an_image_stays_where_the_tower_is_left_out():
    # LLaVA-NeXT's `image_newline`: one vector of 512 elements.
    without = weight_bytes("llava-next", limit_mm_per_prompt=NO_IMAGES)
    assert without - weight_bytes("llava", limit_mm_per_prompt=NO_IMAGES) == 512 * 2


def test_data_mode_keeps_a_tower_whole_that_can_be():
    # Beside what is whole anyway, three quarters of the tower's divided weights come on top with TP 4.
    assert weight_bytes("qwen2.5-vl", tp=4, mm_encoder_tp_mode="data") > weight_bytes("qwen2.5-vl", tp=4)
    assert weight_bytes("gemma3", tp=4, mm_encoder_tp_mode="data") == weight_bytes("gemma3", tp=4)


def test_a_tower_that_does_not_divide_is_refused_with_what_helps():
    vision = {**TOWERS["qwen2.5-vl"]["vision_config"], "num_heads": 2, "intermediate_size": 704}
    asked = model("qwen2.5-vl", vision_config=vision)
    (reason,) = tower_refusals(asked, layout(asked, tp=4))
    assert (reason.rule, reason.field) == ("tower_tp", "tensor_parallel_size")
    assert "2 heads" in reason.message
    assert "--mm-encoder-tp-mode data" in reason.remedy
    assert tower_refusals(asked, layout(asked, tp=4), towers=TowerUse(whole=True)) == ()


def test_a_tower_that_vllm_keeps_whole_by_itself_is_never_refused():
    asked = model("kimi k2.5 with heads that do not divide")
    assert tower_refusals(asked, layout(asked, tp=4)) == ()


def test_a_config_without_its_tower_is_unknown_and_names_the_key():
    with pytest.raises(Unknown) as fault:
        model("qwen3-vl", vision_config=None)
    assert fault.value.field == "vision_config"


def test_a_tower_of_another_kind_is_unknown_and_names_the_key():
    with pytest.raises(Unknown) as fault:
        model("llava", vision_config={"model_type": "eva_vision", "num_hidden_layers": 2, "hidden_size": 64})
    assert fault.value.field == "vision_config.model_type"


def test_limits_that_are_no_object_are_told():
    with pytest.raises(BadInput) as fault:
        tower_use(flags(limit_mm_per_prompt="0"))
    assert fault.value.field == "limit_mm_per_prompt"


def test_an_encoder_alone_is_not_planned():
    with pytest.raises(Unknown) as fault:
        tower_use(flags(mm_encoder_only=True))
    assert fault.value.field == "mm_encoder_only"
