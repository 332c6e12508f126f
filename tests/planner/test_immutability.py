"""A saved plan is a record."""

import json

import pytest
from django.db import connection

from planner.content import content_hash
from planner.core.errors import BadInput, Unknown
from planner.models import Plan
from planner.services import plan_save
from tests.factories import a_model, a_plan, the_inputs


def test_a_saved_plan_freezes_question_answer_and_version(alice):
    plan = Plan.objects.get(pk=a_plan(alice).pk)
    assert plan.inputs == the_inputs()
    assert plan.document["verdict"] == plan.verdict == "fits"
    assert plan.summary == plan.document["summary"]
    assert plan.core_version == plan.document["core_version"]
    assert plan.created_by == alice
    assert plan.is_intact


def test_saving_a_plan_again_is_refused(alice):
    plan = a_plan(alice)
    plan.name = "another"
    with pytest.raises(BadInput, match="child"):
        plan.save()
    assert Plan.objects.get(pk=plan.pk).name != "another"


def test_a_second_row_with_the_key_of_a_plan_is_refused_by_the_database(alice):
    first = a_plan(alice)
    copy = Plan(pk=first.pk, name="another", inputs={}, document={}, created_by=alice)
    with pytest.raises(Exception, match=r"(?i)unique"):
        copy.save()


def test_plans_are_not_updated_in_bulk_either(alice):
    plan = a_plan(alice)
    with pytest.raises(BadInput):
        Plan.objects.filter(pk=plan.pk).update(name="another")
    with pytest.raises(BadInput):
        Plan.objects.bulk_update([plan], ["name"])


def test_a_change_behind_our_back_is_noticed(alice):
    plan = a_plan(alice)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE planner_plan SET inputs = %s WHERE id = %s", [json.dumps({"gpu": "other"}), plan.pk])
    assert not Plan.objects.get(pk=plan.pk).is_intact


def test_an_edit_is_a_child(alice):
    first = a_plan(alice)
    child = a_plan(alice, parent=first, args={"max_model_len": 2048})
    assert child.parent == first
    assert list(first.children.all()) == [child]
    assert child.content_hash != first.content_hash


def test_the_same_content_has_the_same_hash_whatever_the_name(alice):
    assert a_plan(alice, name="one").content_hash == a_plan(alice, name="two").content_hash


def test_a_plan_without_a_name_is_called_after_what_it_plans(alice):
    assert a_plan(alice).name == "small-llama on 1 × Test 80GB"


def test_a_question_without_an_answer_is_not_kept(alice):
    with pytest.raises(Unknown, match="acme/nothing"):
        plan_save(user=alice, inputs={**the_inputs(), "model": "acme/nothing"})
    assert not Plan.objects.exists()


def test_a_plan_outlives_its_model(alice):
    plan = a_plan(alice)
    a_model(alice, "acme/other")
    type(plan)._meta.apps.get_model("planner", "ModelSpec").objects.all().delete()
    assert Plan.objects.get(pk=plan.pk).is_intact


@pytest.mark.parametrize(
    ("one", "same"), [({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({"a": 1.0}, {"a": 1}), ([1e16], [10000000000000000])]
)
def test_the_hash_is_of_values_not_of_their_spelling(one, same):
    assert content_hash(one, {}, "1") == content_hash(same, {}, "1")


@pytest.mark.parametrize("other", [{"a": 2}, {"a": "1"}, {"a": True}, {"a": [1]}, {"a": None}])
def test_the_hash_tells_different_content_apart(other):
    assert content_hash({"a": 1}, {}, "1") != content_hash(other, {}, "1")
