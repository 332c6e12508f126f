"""Plans: the list, one plan as it was frozen, and plans side by side."""

import re

import pytest

from planner.models import Plan
from tests.factories import a_plan

REFUSED = {"args": {"max_model_len": 8192}}


@pytest.fixture
def bobs(client, bob):
    client.force_login(bob)
    return client


def compare(client, *plans, **query):
    return client.get("/compare", {"plan": [getattr(plan, "pk", plan) for plan in plans], **query})


def test_the_list_is_narrowed_by_verdict_model_person_and_day(bobs, alice, paula):
    fits, refused = a_plan(alice), a_plan(paula, **REFUSED)
    assert refused.verdict == "refused"

    def found(query):
        return [row["id"] for row in bobs.get(f"/plans.json?{query}").json()["results"]]

    assert found("") == [refused.pk, fits.pk]
    assert found("verdict=refused") == [refused.pk]
    assert found("created_by=alice") == [fits.pk]
    assert found("model=acme/small-llama&gpu=test-80gb&ordering=created_at") == [fits.pk, refused.pk]
    assert found("created_before=2001-01-01") == []
    assert found("search=nothing+like+it") == []


def test_ticked_plans_go_to_the_comparison(bobs, alice):
    plan = a_plan(alice)
    html = bobs.get("/plans").content.decode()
    assert f'<input type="checkbox" name="plan" value="{plan.pk}"' in html
    assert re.search(r'<form method="get" action="/compare"', html)
    assert 'data-key="c"' in html


def test_the_list_reads_no_documents(bobs, alice, django_assert_num_queries, django_assert_max_num_queries):
    for _ in range(5):
        a_plan(alice)
    with django_assert_max_num_queries(7) as captured:
        bobs.get("/plans")
    assert not any('"planner_plan"."document"' in query["sql"] for query in captured)


@pytest.mark.parametrize("tab", ["memory", "capacity", "why", "json"])
def test_a_plan_shows_its_verdict_on_every_tab(bobs, alice, tab):
    plan = a_plan(alice)
    html = bobs.get(f"/plans/{plan.pk}?tab={tab}").content.decode()
    assert "verdict--fits" in html
    assert f'href="?tab={tab}" aria-current="page"' in html


def test_a_plan_says_who_saved_it_with_which_core_and_its_command(bobs, alice):
    plan = a_plan(alice)
    html = bobs.get(f"/plans/{plan.pk}").content.decode()
    assert "by alice" in html
    assert f"<dd>{plan.core_version}" in html
    assert "vllm serve acme/small-llama" in html
    assert "--max-model-len 4096" in html


def test_a_refused_plan_shows_the_reason_and_no_bars(bobs, alice):
    plan = a_plan(alice, **REFUSED)
    html = bobs.get(f"/plans/{plan.pk}").content.decode()
    assert "verdict--refused" in html
    assert "Remedy" in html
    assert '<svg class="bar"' not in html


def test_revisions_link_both_ways(bobs, alice):
    parent = a_plan(alice)
    child = a_plan(alice, parent=parent, args={"gpu_memory_utilization": 0.8})
    assert f'href="/plans/{child.pk}"' in bobs.get(f"/plans/{parent.pk}").content.decode()
    html = bobs.get(f"/plans/{child.pk}").content.decode()
    assert f'href="/plans/{parent.pk}"' in html
    assert f'href="/compare?plan={parent.pk}&amp;plan={child.pk}"' in html


def test_edit_as_new_opens_the_workbench_on_the_same_question(client, alice):
    plan = a_plan(alice)
    client.force_login(alice)
    html = client.get(f"/plans/{plan.pk}").content.decode()
    address = re.search(r'href="(/plans/new\?[^"]+)">Edit as new', html)[1].replace("&amp;", "&")
    assert f"from={plan.pk}" in address
    assert client.get(address).status_code == 200
    document = client.get(address.replace("/plans/new", "/plans/new.json")).json()
    assert document["kv_cache"] == plan.document["kv_cache"]


def test_bob_is_offered_no_edit_he_could_not_save(bobs, alice):
    assert "Edit as new" not in bobs.get(f"/plans/{a_plan(alice).pk}").content.decode()


def test_a_plan_of_today_says_that_today_agrees(bobs, alice):
    plan = a_plan(alice)
    assert bobs.get(f"/plans/{plan.pk}.json").json()["today"] is None
    assert "gives the same answer today" in bobs.get(f"/plans/{plan.pk}").content.decode()


def test_a_plan_that_today_would_answer_otherwise_shows_both(bobs, alice):
    plan = a_plan(alice)
    saved = {**plan.document, "summary": "Fits, said an older core.", "core_version": "0"}
    saved["kv_cache"] = {**saved["kv_cache"], "num_gpu_blocks": 7}
    older = Plan.objects.create(
        name="older",
        inputs=plan.inputs,
        document=saved,
        core_version="0",
        content_hash="",
        model_name=plan.model_name,
        gpu_slug=plan.gpu_slug,
        vllm_version=plan.vllm_version,
        verdict="fits",
        summary=saved["summary"],
        created_by=alice,
    )
    data = bobs.get(f"/plans/{older.pk}.json").json()
    assert data["document"]["summary"] == "Fits, said an older core."
    assert data["today"]["summary"] == plan.summary
    assert {"name": "KV blocks", "unit": "count", "values": [7, plan.document["kv_cache"]["num_gpu_blocks"]]} in data[
        "changed"
    ]
    html = bobs.get(f"/plans/{older.pk}").content.decode()
    assert "answers differently" in html
    assert "This record was altered" in html


def test_other_words_for_the_same_figures_are_called_that(bobs, alice):
    plan = a_plan(alice)
    reworded = {**plan.document, "summary": "It fits."}
    older = Plan.objects.create(
        **{name: getattr(plan, name) for name in ("inputs", "model_name", "gpu_slug", "vllm_version", "verdict")},
        name="reworded",
        document=reworded,
        core_version="0",
        content_hash="",
        summary=reworded["summary"],
        created_by=alice,
    )
    assert bobs.get(f"/plans/{older.pk}.json").json()["changed"] == []
    assert "same figures in other words" in bobs.get(f"/plans/{older.pk}").content.decode()


def test_a_plan_whose_model_has_gone_says_so_and_keeps_its_answer(bobs, alice):
    from planner.models import ModelSpec

    plan = a_plan(alice)
    ModelSpec.objects.all().delete()
    html = bobs.get(f"/plans/{plan.pk}").content.decode()
    assert "answers differently" in html
    assert "verdict--fits" in html


def test_an_unknown_plan_is_not_found(bobs):
    assert bobs.get("/plans/4711").status_code == 404
    assert bobs.get("/plans/4711.json").json()["status"] == 404


def test_plans_side_by_side_show_what_differs_first_and_signed(bobs, alice):
    first = a_plan(alice)
    second = a_plan(alice, args={"gpu_memory_utilization": 0.8})
    html = compare(bobs, first, second).content.decode()
    assert html.index("What differs") < html.index("The same in all")
    assert "<code>gpu_memory_utilization</code>" in html
    saved, changed = (plan.document["kv_cache"]["num_gpu_blocks"] for plan in (first, second))
    assert f"−{saved - changed:,}" in html
    assert html.count('<svg class="bar"') == 2
    assert html.count('<path class="line ') == 2


def test_the_switch_leaves_only_differences(bobs, alice):
    plans = a_plan(alice), a_plan(alice, args={"gpu_memory_utilization": 0.8})
    assert "The same in all" not in compare(bobs, *plans, only="differences").content.decode()


def test_a_comparison_as_data_has_every_difference_against_the_first(bobs, alice):
    first, second = a_plan(alice), a_plan(alice, args={"gpu_memory_utilization": 0.8})
    data = bobs.get(f"/compare.json?plan={first.pk}&plan={second.pk}").json()
    row = next(row for row in data["rows"] if row["name"] == "KV blocks")
    assert row["differences"] == [0, row["values"][1] - row["values"][0]]
    assert [plan["letter"] for plan in data["plans"]] == ["A", "B"]


def test_six_plans_compare_and_a_refused_one_among_them(bobs, alice):
    plans = [a_plan(alice, args={"gpu_memory_utilization": 0.5 + step / 20}) for step in range(5)]
    html = compare(bobs, *plans, a_plan(alice, **REFUSED)).content.decode()
    assert html.count('<svg class="bar"') == 5
    assert "not sized" in html


def test_equal_plans_say_that_nothing_differs(bobs, alice):
    assert "Nothing: these plans" in compare(bobs, a_plan(alice), a_plan(alice)).content.decode()


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        (["4711", "4712"], 404, "There is no plan 4711, 4712"),
        (["4711"], 400, "1 plan was asked for"),
        (["1", "2", "3", "4", "5", "6", "7"], 400, "7 plans were asked for"),
        (["x", "2"], 400, "is not a plan&#x27;s number"),
        (["٣", "2"], 404, "There is no plan"),
        (["9" * 30, "2"], 400, "is not a plan&#x27;s number"),
    ],
)
def test_a_comparison_that_cannot_be_made_says_why(bobs, asked, status, said):
    answer = compare(bobs, *asked)
    assert answer.status_code == status
    assert said in answer.content.decode()
    assert bobs.get("/compare.json", {"plan": asked}).json()["status"] == status


def test_a_comparison_of_nothing_offers_the_newest_plans(bobs, alice):
    plan = a_plan(alice, name="Desk")
    html = bobs.get("/compare").content.decode()
    assert f'value="{plan.pk}"' in html
    assert "Desk" in html
