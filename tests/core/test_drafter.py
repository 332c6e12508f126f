"""What speculative decoding adds to a rank of the last stage, and which drafters are not known."""

import pytest

from planner.core.drafter import Target, drafter_of
from planner.core.drafter_refusals import drafter_refusals
from planner.core.engine import Version
from planner.core.errors import BadInput, Unknown
from planner.core.layout import Layout
from planner.core.model import model_from_config
from planner.core.speculation import Speculation
from planner.core.weights import rank_weights
from tests.engine.shapes_drafters import DRAFTERS, HEADS, TARGET

VOCABULARY, WIDTH = 1024, 512  # of the small models, padded


def drafter(config, method, *, draft=None, named="", tokens=2, **place):
    target = Target(model=model_from_config(config, name="target"), **place)
    known = None if draft is None else model_from_config(draft, name="drafter")
    return drafter_of(target, Speculation(method=method, tokens=tokens, model=named), draft=known)


def parameter_bytes(drafting, *, stages=1):
    whole = Layout(tensor_parallel_size=1, pipeline_parallel_size=stages, data_parallel_size=1, layers_per_stage=(1,))
    layout = drafting.layout(whole)
    return rank_weights(drafting.model, layout=layout, pp_stage=0, dtype="bfloat16").parameter_bytes


@pytest.mark.parametrize("method", ["ngram", "suffix"])
def test_drafting_from_the_prompt_holds_no_weights(method):
    assert drafter(TARGET, method) is None


def test_heads_of_a_checkpoint_are_as_many_layers_as_it_says():
    assert len(drafter(HEADS["mimo, two heads"], "mtp").layers) == 2


def test_heads_keep_an_embedding_of_their_own_over_several_stages():
    one = parameter_bytes(drafter(HEADS["deepseek"], "mtp"))
    assert parameter_bytes(drafter(HEADS["deepseek"], "mtp", stages=2)) - one == VOCABULARY * WIDTH * 2


def test_the_target_named_as_its_own_drafter_means_its_heads():
    named = drafter(HEADS["deepseek"], "mtp", named="target")
    assert parameter_bytes(named) == parameter_bytes(drafter(HEADS["deepseek"], "mtp"))


def test_a_model_without_heads_cannot_draft_with_them():
    with pytest.raises(Unknown) as fault:
        drafter(TARGET, "mtp")
    assert fault.value.field == "speculative_config"


def test_a_drafter_that_nobody_knows_is_named():
    with pytest.raises(Unknown) as fault:
        drafter(TARGET, "eagle3", named="acme/eagle-head")
    assert "acme/eagle-head" in fault.value.message
    assert "acme/eagle-head" in fault.value.fix


@pytest.mark.parametrize("method", ["eagle", "draft_model"])
def test_over_several_stages_these_drafters_are_not_planned(method):
    _, config, _ = DRAFTERS["eagle" if method == "eagle" else "a whole model"]
    with pytest.raises(Unknown):
        drafter(TARGET, method, draft=config, stages=2)


def test_a_plain_model_is_no_eagle_3_head():
    with pytest.raises(Unknown):
        drafter(TARGET, "eagle3", draft=TARGET)


@pytest.mark.parametrize(("version", "positions"), [("0.26.0", 512), ("0.27.1", 4096)])
def test_since_0_27_1_an_eagle_heads_rotary_table_reaches_as_far_as_the_target(version, positions):
    _, config, _ = DRAFTERS["eagle3, two narrow layers"]
    drafting = drafter(TARGET, "eagle3", draft=config, version=Version.parse(version), max_model_len=4096)
    assert [rope.positions for rope in drafting.model.decoder.ropes] == [positions]


def test_how_many_tokens_are_drafted_has_no_default():
    with pytest.raises(BadInput) as fault:
        drafter(TARGET, "ngram", tokens=0)
    assert fault.value.field == "speculative_config"
    assert drafter(TARGET, "suffix", tokens=0) is None


def test_several_heads_draft_whole_turns():
    with pytest.raises(BadInput) as fault:
        drafter(HEADS["mimo, two heads"], "mtp", tokens=3)
    assert "no multiple of the 2 heads" in fault.value.message
    assert drafter(HEADS["mimo, two heads"], "mtp", tokens=4)


def test_a_drafter_whose_heads_tp_does_not_divide_is_refused_by_name():
    three_heads = {**TARGET, "hidden_size": 192, "num_attention_heads": 3, "num_key_value_heads": 3}
    draft = model_from_config(three_heads, name="acme/small")
    layout = Layout(tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=1, layers_per_stage=(3,))
    refusals = drafter_refusals(draft, layout)
    assert refusals[0].rule == "heads_tp"
    assert "the drafter acme/small" in refusals[0].message
    assert drafter_refusals(None, layout) == ()
