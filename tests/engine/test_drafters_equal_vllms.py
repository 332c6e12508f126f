"""Real vLLM as judge of drafters: the bytes that they add to a rank of the last stage, and the layers that cache."""

import json

import pytest

from planner.core.drafter import Target, drafter_of
from planner.core.model import model_from_config
from planner.core.speculation import Speculation
from planner.core.weights import rank_weights
from tests.engine.judged import layout_of
from tests.engine.shapes_drafters import DRAFTERS, HEADS, TARGET


def planned(config, method, *, tp, pp=1, draft=None):
    """Return the bytes that we plan for a drafter, and how many of its layers cache."""
    model = model_from_config(config, name="target")
    named = None if draft is None else model_from_config(draft, name="drafter")
    target = Target(model=model, stages=pp, max_model_len=model.context.default())
    speculation = Speculation(method=method, tokens=2, model="" if draft is None else "drafter")
    drafter = drafter_of(target, speculation, draft=named)
    layout = drafter.layout(layout_of(model, tp=tp, pp=pp))
    weights = rank_weights(drafter.model, layout=layout, pp_stage=0, dtype=model.dtype)
    return [weights.parameter_bytes, weights.buffer_bytes, len(drafter.layers)]


def created(engine, config, speculation, *, tp, pp=1, owns=()):
    """Return the bytes that vLLM built for it on the last rank, and how many layers it added to the stage's."""
    place = {"tensor_parallel_size": tp, "pipeline_parallel_size": pp, "rank": tp * pp - 1, "config": config}
    alone = engine.ask("weights", **place)
    answer = engine.ask("weights", flags={"speculative_config": speculation}, drafter_owns=list(owns), **place)
    added = answer["kv_layers"] - alone["kv_layers"]
    return [answer["drafter_parameter_bytes"], answer["drafter_buffer_bytes"], added]


@pytest.mark.parametrize(("tp", "pp"), [(1, 1), (4, 1), (2, 2)])
@pytest.mark.parametrize("name", HEADS)
def test_the_heads_of_a_checkpoint_take_what_vllm_creates_and_shares(engine, name, tp, pp):
    speculation = {"method": "mtp", "num_speculative_tokens": 2}
    assert planned(HEADS[name], "mtp", tp=tp, pp=pp) == created(engine, HEADS[name], speculation, tp=tp, pp=pp)


@pytest.mark.parametrize("tp", [1, 4])
@pytest.mark.parametrize("name", DRAFTERS)
def test_a_drafter_of_its_own_takes_what_vllm_creates_and_shares(engine, tmp_path, name, tp):
    method, config, owns = DRAFTERS[name]
    (tmp_path / "config.json").write_text(json.dumps(config))
    speculation = {"method": method, "model": str(tmp_path), "num_speculative_tokens": 2}
    assert planned(TARGET, method, tp=tp, draft=config) == created(engine, TARGET, speculation, tp=tp, owns=owns)


def test_an_eagle_3_head_keeps_its_embedding_where_the_stage_has_none(engine, tmp_path):
    method, config, owns = DRAFTERS["eagle3"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    speculation = {"method": method, "model": str(tmp_path), "num_speculative_tokens": 2}
    answer = created(engine, TARGET, speculation, tp=2, pp=2, owns=[*owns, "embed_tokens"])
    assert planned(TARGET, method, tp=2, pp=2, draft=config) == answer
