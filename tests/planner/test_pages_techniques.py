"""Techniques: the workbench's question, and what each technique would do to its answer."""

import pytest

from tests.factories import a_gpu_type, a_model

QUESTION = "model=acme/small-llama&gpu=test-80gb&max_model_len=4096"
MIX = "request=chat:1:512:256"


@pytest.fixture
def bobs(client, bob, alice):
    a_model(alice), a_gpu_type(alice)
    client.force_login(bob)
    return client


def named(answer, name):
    return next(technique for technique in answer.json()["techniques"] if technique["name"] == name)


def test_without_a_question_the_page_asks_for_one(bobs):
    html = bobs.get("/techniques").content.decode()
    assert "Choose a model and a GPU" in html
    assert bobs.get("/techniques.json").json()["techniques"] == []


def test_the_mix_of_the_address_is_what_is_weighed(bobs):
    # 768 of 4,096 reserved tokens: 81.25 % would stay empty; 48 whole pages of 16 leave nothing.
    unused = named(bobs.get(f"/techniques.json?{QUESTION}&{MIX}"), "paging")["measures"][0]
    assert unused == {"label": "unused memory", "unit": "share", "before": 0.8125, "after": 0}
    html = bobs.get(f"/techniques?{QUESTION}&{MIX}").content.decode()
    assert "81.2% → 0.0%" in html
    assert "chat (512 tokens in, 256 out)" in html


def test_what_vllm_does_not_have_is_said_with_what_comes_nearest(bobs):
    html = bobs.get(f"/techniques?{QUESTION}").content.decode()
    assert "not in vLLM" in html
    assert "Nearest in vLLM:" in html


def test_every_field_of_the_workbench_survives_the_form(bobs):
    html = bobs.get(f"/techniques?{QUESTION}&{MIX}&gpu_memory_utilization=0.8").content.decode()
    assert '<input type="hidden" name="gpu_memory_utilization" value="0.8">' in html
    assert '<input type="hidden" name="request" value="chat:1:512:256">' in html
    assert 'name="max_model_len" id="t-len" value="4096"' in html


def test_the_way_back_leads_to_the_same_plan(bobs):
    assert f'href="/plans/new?{QUESTION.replace("&", "&amp;")}' in bobs.get(f"/techniques?{QUESTION}").content.decode()


def test_which_gpu_reads_which_cache_depends_on_the_version(bobs):
    def reads(version):
        (row,) = bobs.get(f"/techniques.json?{QUESTION}&vllm_version={version}").json()["cache_support"]
        return {kind["name"]: kind["supported"] for kind in row["kinds"]}

    assert reads("0.11.0")["int4_per_token_head"] is False
    assert reads("0.32.0")["int4_per_token_head"] is True


@pytest.mark.parametrize(
    "query", ["model=acme/none&gpu=test-80gb", f"{QUESTION}&request=chat:1:9000:256", f"{QUESTION}&x_y=1"]
)
def test_a_question_that_cannot_be_answered_is_told_and_kept(bobs, query):
    answer = bobs.get(f"/techniques?{query}")
    assert answer.status_code == 422
    assert "Fix:" in answer.content.decode()
    assert bobs.get(f"/techniques.json?{query}").status_code == 400


def test_a_plan_that_vllm_refuses_is_weighed_by_nothing(bobs):
    html = bobs.get(f"/techniques?{QUESTION}&tensor_parallel_size=3").content.decode()
    assert "no technique can be weighed" in html
