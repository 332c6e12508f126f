"""Every address that the service has, asked by nobody, by Charlie and by Bob; what is open stands in a table here."""

import re

import pytest
from django.contrib.admindocs.views import simplify_regex
from django.test import Client
from django.urls import URLResolver, get_resolver
from django.urls.resolvers import RoutePattern

from planner.models import ApiToken, GpuType, Host, ModelSpec, Plan
from tests.factories import a_host, a_plan

# Static files are served before any address is looked up, and hold nothing that the repository does not.
OPEN_TO_ANYBODY = {"/accounts/login/", "/accounts/link/x/", "/admin/login/", "/healthz", "/readyz"}
OPEN_TO_WHOEVER_IS_SIGNED_IN = {
    "/": "says where to begin, and shows only what the person may see",
    "/.json": "the same",
    "/start": "leads from the search field to the workbench",
    "/account": "one's own tokens and password",
    "/account.json": "the same",
    "/accounts/logout/": "",
    "/admin/logout/": "",
    "/api/": "how the API is used",
    "/api/v1/schema": "the same, for programs",
    "/api/v1/me": "what one may do",
}
WRITES_THAT_A_VIEWER_MAY_TRY = {
    *("/account/tokens", "/account/tokens/x/revoke", "/account/password"),
    *("/api/v1/estimate", "/api/v1/sweep"),
}
SHUT = {302, 401, 403, 404, 405}
ARGUMENTS = {"pk": "1", "slug": "acme--small-llama", "object_id": "1", "app_label": "auth", "content_type_id": "1"}


def addresses():
    return sorted(set(_walk(get_resolver(), "/")))


def _walk(resolver, before):
    for pattern in resolver.url_patterns:
        text = str(pattern.pattern)
        text = text if isinstance(pattern.pattern, RoutePattern) else simplify_regex(text).removeprefix("/")
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern, before + text)
        else:
            yield before + re.sub(r"<(?:\w+:)?(\w+)>", lambda found: ARGUMENTS.get(found[1], "x"), text)


def stands_open(answer):
    """Whether more came back than the way to the sign-in page, or a refusal."""
    if answer.status_code == 302:
        return "/login/" not in answer.url
    return answer.status_code not in SHUT


@pytest.fixture
def rows(alice):
    a_host(alice, gpu_type=a_plan(alice) and "test-80gb")


def counts():
    return [kind.objects.count() for kind in (ApiToken, GpuType, Host, ModelSpec, Plan)]


def test_the_walk_finds_pages_api_and_admin():
    found = addresses()
    assert {"/", "/plans/1", "/plans/1.json", "/api/v1/plans/1", "/api/v1/estimate"} <= set(found)
    assert {"/healthz", "/admin/auth/user/"} <= set(found)
    assert len(found) > 60


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete", "options", "head"])
def test_nobody_gets_in_without_signing_in(rows, method):
    before = counts()
    opened = {path for path in addresses() if stands_open(getattr(Client(), method)(path))}
    assert opened <= OPEN_TO_ANYBODY
    assert counts() == before


def test_charlie_who_is_in_no_group_sees_only_what_is_everybodys(rows, charlie):
    opened = set()
    for path in addresses():
        client = Client()
        client.force_login(charlie)
        if stands_open(client.get(path)):
            opened.add(path)
    assert opened - OPEN_TO_ANYBODY <= set(OPEN_TO_WHOEVER_IS_SIGNED_IN)


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_bob_who_may_look_changes_nothing(rows, bob, method):
    before = counts()
    allowed = OPEN_TO_ANYBODY | set(OPEN_TO_WHOEVER_IS_SIGNED_IN) | WRITES_THAT_A_VIEWER_MAY_TRY
    opened = set()
    for path in addresses():
        client = Client()
        client.force_login(bob)
        answer = getattr(client, method)(path, content_type="application/json")
        if stands_open(answer):
            opened.add(path)
    assert opened <= allowed
    assert counts() == before


def test_bob_who_may_look_sees_every_list_and_row(rows, bob):
    client = Client()
    client.force_login(bob)
    plan, host = Plan.objects.get(), Host.objects.get()
    seen = [
        "models",
        "models/acme--small-llama",
        "gpu-types",
        "gpu-types/test-80gb",
        "hosts",
        f"hosts/{host.pk}",
        "plans",
    ]
    for path in [*seen, f"plans/{plan.pk}", f"plans/{plan.pk}/children", "schema", "me"]:
        assert client.get(f"/api/v1/{path}").status_code == 200, path


def test_the_address_of_the_documentation_leads_nobody_to_the_sign_in_page(db):
    answer = Client().get("/api/")
    assert answer.status_code == 302
    assert answer.url == "/accounts/login/?next=/api/"
