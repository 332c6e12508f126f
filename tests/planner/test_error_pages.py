"""Errors in words: as a page, as a fragment for htmx, as data under `.json`."""

import json

import pytest
from django.test import Client, RequestFactory, override_settings
from django.urls import path

from planner.pages import errors
from planner.urls import urlpatterns as ours

handler400, handler403 = errors.bad_request, errors.permission_denied
handler404, handler500 = errors.not_found, errors.server_error


def broken(request):
    raise RuntimeError("a fault of ours")


urlpatterns = [path("broken", broken), *ours]


def test_a_page_that_is_not_there_says_so_and_leads_on(client, bob):
    client.force_login(bob)
    answer = client.get("/nothing-here")
    assert answer.status_code == 404
    assert "There is no /nothing-here." in answer.content.decode()


def test_htmx_gets_a_fragment(client, bob):
    client.force_login(bob)
    text = client.get("/nothing-here", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert "Nothing is here" in text


def test_data_gets_data(client, bob):
    client.force_login(bob)
    answer = client.get("/nothing-here.json")
    assert answer["Content-Type"] == "application/problem+json"
    assert json.loads(answer.content)["status"] == 404


def test_the_refusal_says_which_right_is_missing(client, charlie):
    client.force_login(charlie)
    answer = client.get("/plans/new")
    assert answer.status_code == 403
    assert "may not plan here" in answer.content.decode()


@override_settings(ROOT_URLCONF=__name__)
def test_a_fault_of_ours_is_told_without_its_entrails(client, bob):
    client.force_login(bob)
    client.raise_request_exception = False
    answer = client.get("/broken")
    assert answer.status_code == 500
    assert "Something broke on our side" in answer.content.decode()
    assert "RuntimeError" not in answer.content.decode()


def test_the_page_of_a_fault_needs_no_database():
    answer = errors.server_error(RequestFactory().get("/plans"))
    assert "Something broke on our side" in answer.content.decode()


def test_a_form_that_is_too_old_says_so(client, bob):

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(bob)
    answer = strict.post("/plans/new?model=a")
    assert answer.status_code == 403
    assert "The form is too old" in answer.content.decode()


@pytest.mark.parametrize("where", ["/plans/new", "/plans/new.json", "/plans/new/help"])
def test_everybody_signs_in_first(client, db, where):
    answer = client.get(where)
    assert (answer.status_code, answer.url) == (302, f"/accounts/login/?next={where}")


def test_a_failed_sign_in_keeps_the_name_and_says_what_to_check(client, bob):
    answer = client.post("/accounts/login/", {"username": "bob", "password": "wrong"})
    text = answer.content.decode()
    assert 'value="bob"' in text
    assert "correct username and password" in text


def test_no_page_carries_inline_script_or_style(client, bob):
    client.force_login(bob)
    for where in ("/plans/new", "/nothing-here"):
        text = client.get(where).content.decode()
        assert "<style" not in text
        assert " style=" not in text
        assert "onclick" not in text
        assert "<script>" not in text
