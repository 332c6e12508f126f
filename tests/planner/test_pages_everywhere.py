"""What every page keeps: who may see it, the same as data, and a policy without inline styles or scripts."""

import re

import pytest

from tests.factories import a_host, a_plan

PAGES = [
    "/",
    "/models",
    "/models/acme--small-llama",
    "/gpu-types",
    "/gpu-types/test-80gb",
    "/hosts",
    "/hosts/{host}",
    "/plans",
    "/plans/{plan}",
    "/compare",
    "/compare?plan={plan}&plan={child}",
    "/techniques?model=acme/small-llama&gpu=test-80gb",
    "/account",
]
OPEN_TO_ALL = {"/", "/account"}
FORMS = ["/models/add", "/gpu-types/add", "/hosts/add"]


@pytest.fixture
def rows(alice):
    plan = a_plan(alice)
    child = a_plan(alice, parent=plan, args={"gpu_memory_utilization": 0.8})
    host = a_host(alice, "node-a", gpu_type="test-80gb", gpu_count=8)
    return {"plan": plan.pk, "child": child.pk, "host": host.pk}


def as_data(address):
    path, _, query = address.partition("?")
    return f"{path}.json?{query}"


@pytest.mark.parametrize("page", PAGES)
def test_alice_and_bob_see_it(page, client, alice, bob, rows):
    for person in (alice, bob):
        client.force_login(person)
        assert client.get(page.format(**rows)).status_code == 200


@pytest.mark.parametrize("page", PAGES)
def test_the_same_address_with_json_is_data(page, client, bob, rows):
    client.force_login(bob)
    answer = client.get(as_data(page.format(**rows)))
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert isinstance(answer.json(), dict)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in OPEN_TO_ALL])
def test_charlie_is_told_what_is_missing(page, client, charlie, rows):
    client.force_login(charlie)
    answer = client.get(page.format(**rows))
    assert answer.status_code == 403
    assert "An administrator can" in answer.content.decode()
    assert client.get(as_data(page.format(**rows))).json()["status"] == 403


@pytest.mark.parametrize("page", PAGES)
def test_nobody_sees_it_without_signing_in(page, client, rows):
    for address in (page.format(**rows), as_data(page.format(**rows))):
        answer = client.get(address)
        assert answer.status_code == 302
        assert answer.url.startswith("/accounts/login/")


@pytest.mark.parametrize("page", [*PAGES, *FORMS])
def test_nothing_on_it_needs_an_unsafe_policy(page, client, alice, rows):
    client.force_login(alice)
    answer = client.get(page.format(**rows))
    html = answer.content.decode()
    assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", html)
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"(src|href)=\"(https?:)?//", re.sub(r"<a [^>]*>", "", html))
    assert "unsafe" not in answer["Content-Security-Policy"]


@pytest.mark.parametrize("page", [*PAGES, *FORMS])
def test_it_has_one_heading_and_a_title(page, client, alice, rows):
    client.force_login(alice)
    html = client.get(page.format(**rows)).content.decode()
    assert html.count("<h1") == 1
    assert re.search(r"<title>[^<]{4,} · vLLM Planner</title>", html)


@pytest.mark.parametrize("page", [*PAGES, *FORMS])
def test_every_input_has_a_label_and_ids_stand_once(page, client, alice, rows):
    client.force_login(alice)
    html = client.get(page.format(**rows)).content.decode()
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert sorted(ids) == sorted(set(ids))
    labelled = set(re.findall(r'<label[^>]*\sfor="([^"]+)"', html))
    for tag in re.findall(r"<(?:input|select|textarea)\b[^>]*>", html):
        if 'type="hidden"' in tag or "aria-label" in tag:
            continue
        assert re.search(r'\sid="([^"]+)"', tag)[1] in labelled, tag


@pytest.mark.parametrize("page", FORMS)
def test_only_those_who_may_add_see_the_forms(page, client, bob, paula, alice):
    allowed = {"bob": False, "paula": page == "/models/add", "alice": True}
    for person in (bob, paula, alice):
        client.force_login(person)
        assert client.get(page).status_code == (200 if allowed[person.username] else 403)


@pytest.mark.parametrize("page", ["/models", "/gpu-types", "/hosts"])
def test_a_viewer_sees_no_button_that_would_refuse_him(page, client, bob, alice):
    client.force_login(bob)
    assert f'href="{page}/add"' not in client.get(page).content.decode()
    client.force_login(alice)
    assert f'href="{page}/add"' in client.get(page).content.decode()


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("/plans.json?verdikt=fits", "filter"),
        ("/plans.json?verdict=perhaps", "verdict"),
        ("/plans.json?created_after=yesterday", "created_after"),
        ("/plans.json?parent=99999999999999999999", "parent"),
        ("/hosts.json?ordering=colour", "ordering"),
        ("/gpu-types.json?colour=green", "filter"),
        ("/models.json?ordering=colour", "ordering"),
    ],
)
def test_as_data_a_filter_that_cannot_be_read_is_told_not_left_out(address, field, client, bob, rows):
    client.force_login(bob)
    answer = client.get(address)
    assert answer.status_code == 400
    assert answer.json()["field"] == field


def test_on_a_page_it_is_told_beside_its_field(client, bob, rows):
    client.force_login(bob)
    html = client.get("/plans?created_after=yesterday").content.decode()
    assert "Enter a valid date" in html
    assert 'value="yesterday"' in html


@pytest.mark.parametrize(
    "address",
    [
        "/plans/" + "9" * 40,
        "/hosts/" + "9" * 40,
        "/models/%00",
        "/gpu-types/a%00b",
        "/plans?parent=" + "9" * 40,
        "/plans?page=-4",
        "/plans?search=%00",
        "/compare?plan=%00&plan=1",
        "/models?ordering=junk&page=99999999999&architecture=%00",
        "/start?q=%00",
        "/start?q=" + "a+" * 3000,
        "/techniques?model=%00&gpu=x&request=junk",
    ],
)
def test_whatever_an_address_holds_is_no_fault_of_ours(address, client, bob, rows):
    client.force_login(bob)
    assert client.get(address).status_code < 500
