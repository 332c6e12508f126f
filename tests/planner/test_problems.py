"""Errors of the API: always problem+json, naming the field and the fix; never a 500."""

import json
from io import BytesIO
from wsgiref.util import setup_testing_defaults

import pytest
from rest_framework.test import APIClient

from planner.api.parsers import LARGEST_BODY_BYTES
from tests.factories import api_of

ESTIMATE = "/api/v1/estimate"
PLANS = "/api/v1/plans"


def problem(answer, status):
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    return body


def send(user, body, path=ESTIMATE, content_type="application/json"):
    return api_of(user).post(path, data=body, content_type=content_type)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b'{"gpu": "\\u0000"}',
        b'{"gpu": "\\ud800"}',
        b'{"gpu": 1e999}',
        b'{"gpu": "x", "gpu_count": ' + b"9" * 5000 + b"}",
        b'{"gpu": "x", "gpu_count": ' + b"9" * 39 + b"}",
        b"[" * 50_000,
        b'{"gpu": ' + b'{"a":' * 40 + b"1" + b"}" * 41,
        b"[]",
        b'"text"',
        b"null",
        b"{}",
        b'{"gpu": null}',
        b'{"gpu": ""}',
        b'{"gpu": 5}',
        b'{"gpu": "x", "gpu_count": "4"}',
        b'{"gpu": "x", "gpu_count": true}',
        b'{"gpu": "x", "gpu_count": 0}',
        b'{"gpu": "x", "gpu_count": 1.5}',
        b'{"gpu": "x", "gpu_memory_gib": -1}',
        b'{"gpu": "x", "gpu_memory_gib": Infinity}',
        b'{"gpu": "x", "requests": {}}',
        b'{"gpu": "x", "requests": [1]}',
        b'{"gpu": "x", "args": []}',
        b'{"gpu": "x", "environment": {"A": 1}}',
        b'{"gpu": "x", "include": ["everything"]}',
    ],
)
@pytest.mark.parametrize("path", [ESTIMATE, PLANS, "/api/v1/models"])
def test_a_body_that_makes_no_sense_is_a_400_that_names_a_fix(alice, body, path):
    for error in problem(send(alice, body, path), 400)["errors"]:
        assert set(error) == {"field", "message", "fix"}
        assert error["message"]
        assert error["fix"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"gpu": "x", "gpu_count": 0}, "gpu_count"),
        (
            {"gpu": "x", "requests": [{"name": "a", "share": 1, "prompt_tokens": 0, "output_tokens": 1}]},
            "requests[0].prompt_tokens",
        ),
        ({"gpu": "x", "environment": {"A": 1}}, "environment.A"),
        ({}, "gpu"),
    ],
)
def test_the_field_is_named_with_its_path(alice, body, field):
    answer = api_of(alice).post(ESTIMATE, body, format="json")
    assert [error["field"] for error in problem(answer, 400)["errors"]] == [field]


def test_a_misspelt_field_is_told_and_not_ignored(alice):
    answer = api_of(alice).post(ESTIMATE, {"gpu": "x", "gpu_cuont": 4}, format="json")
    (error,) = problem(answer, 400)["errors"]
    assert error["field"] == "gpu_cuont"
    assert "gpu_count" in error["message"]


def test_a_misspelt_filter_is_told_and_not_ignored(alice):
    (error,) = problem(api_of(alice).get(PLANS, {"verdcit": "fits"}), 400)["errors"]
    assert error == {"field": "verdcit", "message": "no filter has this name.", "fix": "did you mean verdict?"}


@pytest.mark.parametrize(
    "query",
    [{"verdict": "perhaps"}, {"search": "\x00"}, {"ordering": "password"}, {"created_after": "x"}, {"parent": "x"}],
)
def test_a_filter_without_such_a_value_is_told(alice, query):
    (error,) = problem(api_of(alice).get(PLANS, query), 400)["errors"]
    assert error["field"] == next(iter(query))


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/nothing",
        "/api/v1/",
        "/api/v1/estimate/",
        "/api/v1/plans/999999",
        "/api/v1/plans/" + "9" * 18,
        "/api/v1/plans/" + "9" * 400,
        "/api/v1/plans/-1",
        "/api/v1/plans/1%00",
        "/api/v1/models/%00",
        "/api/v1/models/..%2f..",
        "/api/v1/hosts/0",
        "/api/v1/plans?page=0",
        "/api/v1/plans?page=" + "9" * 30,
    ],
)
def test_what_is_not_there_is_a_404(alice, address):
    problem(api_of(alice).get(address), 404)


def test_a_method_that_is_not_there_is_a_405_that_names_those_that_are(alice):
    answer = api_of(alice).get(ESTIMATE)
    assert "Allow" in problem(answer, 405)["fix"]
    assert answer.headers["Allow"] == "POST, OPTIONS"


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_nobody_changes_a_saved_plan_or_a_model_through_the_api(adam, method):
    problem(getattr(api_of(adam), method)(f"{PLANS}/1"), 405)
    if method != "delete":
        problem(getattr(api_of(adam), method)("/api/v1/models/x"), 405)


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "nonsense"]
)
def test_a_body_that_is_not_json_is_a_415(alice, content_type):
    assert "application/json" in problem(send(alice, b"gpu=x", content_type=content_type), 415)["fix"]


def test_a_body_that_is_too_large_is_a_413(alice):
    body = b'{"gpu": "' + b"x" * LARGEST_BODY_BYTES + b'"}'
    assert f"{LARGEST_BODY_BYTES:,}" in problem(send(alice, body), 413)["detail"]


@pytest.mark.parametrize("charset", ["base64", "bz2_codec", "nonsense", "utf-16", "\x00"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_strange_charset_in_the_header_breaks_nothing(wsgi, method, charset):
    """Django's test client fails on it as Django itself does, so this speaks WSGI."""
    status, _ = spoken(wsgi, method, b"{}", CONTENT_TYPE=f"application/json; charset={charset}", CONTENT_LENGTH="2")
    assert status == "401 Unauthorized"


def test_a_body_without_a_length_is_a_411_and_not_taken_for_an_empty_one(wsgi):
    status, body = spoken(wsgi, "POST", b"{}", CONTENT_TYPE="application/json", HTTP_TRANSFER_ENCODING="chunked")
    assert status == "411 Length Required"
    assert "Content-Length" in json.loads(body)["fix"]


def spoken(wsgi, method, body, **headers):
    answered = []
    environ = {"REQUEST_METHOD": method, "PATH_INFO": PLANS, "QUERY_STRING": "search=x", "HTTP_HOST": "localhost"}
    environ |= {"wsgi.input": BytesIO(body), **headers}
    setup_testing_defaults(environ)
    parts = wsgi(environ, lambda status, _headers: answered.append(status))
    return answered[0], b"".join(parts)


def test_asking_for_a_format_that_is_not_there_is_a_406(alice):
    problem(api_of(alice).get(PLANS, headers={"Accept": "text/html"}), 406)


def test_a_session_needs_its_csrf_token_to_write(alice):
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(alice)
    assert "CSRF" in problem(browser.post(ESTIMATE, {"gpu": "x"}, format="json"), 403)["detail"]


def test_the_schema_comes_as_json_to_who_asks_for_it(bob):
    api = api_of(bob)
    by_address = api.get("/api/v1/schema?format=json")
    by_header = api.get("/api/v1/schema", headers={"Accept": "application/json"})
    assert by_address.json() == by_header.json()
    assert by_header.json()["info"]["title"] == "vLLM Planner"


def test_a_list_may_be_asked_for_as_json_and_as_nothing_else(bob):
    assert api_of(bob).get(f"{PLANS}?format=json").status_code == 200
    problem(api_of(bob).get(f"{PLANS}?format=xml"), 404)
