"""Layouts that vLLM's classes for mixtures of experts do not build."""

from planner.core.layout import Layout
from planner.core.model import model_from_config
from planner.core.weight_refusals import weight_refusals
from tests.engine.shapes_moe import MIXTURES


def refusals(name, *, tp=1, stages=None):
    model = model_from_config(MIXTURES[name], name="tried")
    layers = stages or (model.num_layers,)
    layout = Layout(
        tensor_parallel_size=tp, pipeline_parallel_size=len(layers), data_parallel_size=1, layers_per_stage=layers
    )
    return [reason.rule for reason in weight_refusals(model, layout)]


def test_a_stage_of_dense_layers_alone_is_refused_where_the_class_looks_for_experts():
    assert refusals("glm4_moe", stages=(1, 5)) == ["pp_unsupported"]
    assert refusals("glm4_moe", stages=(2, 4)) == []


def test_a_stage_of_dense_layers_alone_is_built_where_the_class_only_warns():
    assert refusals("deepseek_v3", stages=(1, 2)) == []


def test_gpt_oss_does_not_repeat_kv_heads_on_more_ranks():
    assert refusals("gpt_oss", tp=2) == []
    assert refusals("gpt_oss", tp=4) == ["kvheads_tp"]


def test_a_tied_ernie_is_not_split_over_stages():
    assert refusals("ernie4_5_moe", stages=(2, 1)) == ["pp_unsupported"]
