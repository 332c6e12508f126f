"""Saved plans through the API."""

import pytest

from planner.models import Plan
from tests.factories import a_plan, api_of, the_inputs

PLANS = "/api/v1/plans"


def save(user, status=201, **body):
    answer = api_of(user).post(PLANS, body, format="json")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_a_plan_is_saved_with_its_answer_and_read_again(alice, paula):
    a_plan(alice)
    saved = save(paula, name="first try", inputs=the_inputs())
    assert saved["name"] == "first try"
    assert saved["created_by"] == "paula"
    assert saved["document"] == api_of(paula).post("/api/v1/estimate", the_inputs(), format="json").json()
    assert api_of(alice).get(f"{PLANS}/{saved['id']}").json() == saved


def test_an_edit_is_a_child_and_is_listed_with_its_parent(alice):
    parent = a_plan(alice)
    child = save(alice, inputs=the_inputs(args={"max_model_len": 1024}), parent=parent.pk)
    assert child["parent"] == parent.pk
    listed = api_of(alice).get(f"{PLANS}/{parent.pk}/children").json()["results"]
    assert [row["id"] for row in listed] == [child["id"]]
    assert api_of(alice).get(PLANS, {"parent": parent.pk}).json()["count"] == 1


@pytest.mark.parametrize("parent", [999_999, 10**20])
def test_a_parent_that_is_not_there_is_named(alice, parent):
    (error,) = save(alice, 400, inputs=the_inputs(), parent=parent)["errors"]
    assert error["field"] == "parent"


def test_a_plan_without_an_answer_is_not_saved_and_says_what_is_unknown(alice):
    problem = save(alice, 422, inputs={**the_inputs(), "model": "acme/nothing"})
    assert "acme/nothing" in problem["detail"]
    assert not Plan.objects.exists()


def test_a_name_that_is_too_long_is_told_and_nothing_is_saved(alice):
    (error,) = save(alice, 400, name="x" * 201, inputs=the_inputs())["errors"]
    assert error["field"] == "name"
    assert not Plan.objects.exists()


def test_a_plan_that_is_refused_is_kept_like_any_other(alice):
    a_plan(alice)
    assert save(alice, inputs=the_inputs(args={"max_model_len": 10**6}))["verdict"] == "refused"


def test_plans_are_found_by_what_they_say(alice, paula):
    a_plan(alice, name="for the night")
    a_plan(alice, name="too long", args={"max_model_len": 10**6})
    api = api_of(paula)

    def found(**query):
        return [row["name"] for row in api.get(PLANS, query).json()["results"]]

    assert found() == ["too long", "for the night"]
    assert found(verdict="fits") == ["for the night"]
    assert found(search="night") == ["for the night"]
    assert found(created_by="paula") == []
    assert found(model="ACME/small-llama", gpu="test-80gb", ordering="name") == ["for the night", "too long"]
    assert found(created_after="2100-01-01T00:00:00Z") == []


def test_a_list_holds_no_documents(alice):
    a_plan(alice)
    (row,) = api_of(alice).get(PLANS).json()["results"]
    assert not {"inputs", "document"} & set(row)
