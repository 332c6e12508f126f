"""People: who can be added, and that nobody lifts themselves up."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from planner.accounts import groups_ensure, user_add
from planner.core.errors import BadInput
from tests.factories import PASSWORD, a_person


@pytest.fixture
def admin_site(adam):
    client = Client()
    client.force_login(adam)
    return client


def test_the_groups_are_there_once_the_database_is(db):
    names = set(Group.objects.values_list("name", flat=True))
    groups_ensure()
    assert names == {"viewer", "planner", "operator", "admin"}
    assert Group.objects.count() == 4


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "username"),
        ({"name": "a b"}, "username"),
        ({"name": "adam"}, "username"),
        ({"group": "emperors"}, "group"),
        ({"password": "123"}, "password"),
    ],
)
def test_a_person_that_cannot_be_added_is_told_why(adam, changes, field):
    with pytest.raises(BadInput) as refused:
        user_add(**{"name": "somebody", "group": "viewer", "password": PASSWORD, **changes})
    assert refused.value.field == field
    assert not User.objects.filter(username="somebody").exists()


def test_a_person_signs_in_with_the_password(db):
    a_person("eve", group="viewer")
    assert Client().login(username="eve", password=PASSWORD)
    assert not Client().login(username="eve", password="wrong")


def test_a_person_without_a_password_cannot_sign_in_with_one(db):
    user_add(name="robot", group="planner")
    assert not Client().login(username="robot", password="")


def test_permissions_are_those_of_the_person_and_of_the_groups_together(bob):
    own = Permission.objects.get(codename="add_plan")
    bob.user_permissions.add(own)
    person = User.objects.get(pk=bob.pk)
    assert person.has_perm("planner.add_plan")
    assert person.has_perm("planner.view_plan")
    assert not person.has_perm("planner.add_host")
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert not User.objects.get(pk=bob.pk).has_perm("planner.view_plan")


def test_admins_see_people_groups_tokens_and_the_audit_log(admin_site):
    for page in ("auth/user/", "auth/group/", "planner/apitoken/", "auditlog/logentry/"):
        assert admin_site.get(f"/admin/{page}").status_code == 200, page


@pytest.mark.parametrize("person", ["alice", "bob", "paula"])
def test_others_do_not_enter_the_admin_site(person, request):
    client = Client()
    client.force_login(request.getfixturevalue(person))
    answer = client.get("/admin/")
    assert answer.status_code == 302
    assert "/admin/login/" in answer.url


def the_form(person, **changes):
    group = person.groups.get()
    joined = {"date_joined_0": "2026-12-01", "date_joined_1": "12:00:00"}
    return {"username": person.username, "is_active": "on", "groups": [group.pk], **joined, **changes, "_save": "Save"}


def test_an_admin_cannot_make_a_superuser(admin_site, adam, bob):
    for person in (adam, bob):
        own_right = Permission.objects.get(codename="delete_user")
        form = the_form(person, is_superuser="on", is_staff="on", user_permissions=[own_right.pk])
        assert admin_site.post(f"/admin/auth/user/{person.pk}/change/", form).status_code == 302
        person = User.objects.get(pk=person.pk)
        assert not person.is_superuser
        assert not person.user_permissions.exists()


def test_an_admin_cannot_take_over_a_superuser(admin_site):
    root = User.objects.create_superuser("root", password=PASSWORD)
    new = {"password1": "another long phrase", "password2": "another long phrase", "usable_password": "true"}
    assert admin_site.post(f"/admin/auth/user/{root.pk}/password/", new).status_code == 403
    assert admin_site.post(f"/admin/auth/user/{root.pk}/change/", {"username": "root"}).status_code == 403
    assert User.objects.get(pk=root.pk).check_password(PASSWORD)


def test_an_admin_puts_people_into_groups(admin_site, bob):
    operators = Group.objects.get(name="operator")
    answer = admin_site.post(f"/admin/auth/user/{bob.pk}/change/", the_form(bob, groups=[operators.pk]))
    assert answer.status_code == 302
    assert User.objects.get(pk=bob.pk).has_perm("planner.add_host")


def test_no_token_is_made_or_changed_on_the_admin_site(admin_site):
    assert admin_site.get("/admin/planner/apitoken/add/").status_code == 403
