"""Every page: nobody is shut out, nothing reaches sideways, no rule of the house is broken, in any theme and width."""

import pytest
from playwright.sync_api import expect

from tests.browser.looking import reaches_sideways, serious_faults
from tests.factories import a_host, a_plan

PAGES = [
    "/",
    "/plans/new",
    "/plans",
    "/plans/{plan}",
    "/plans/{plan}?tab=capacity",
    "/plans/{plan}?tab=why",
    "/compare?plan={plan}&plan={child}",
    "/models",
    "/models/add",
    "/models/acme--small-llama",
    "/models/acme--small-llama/fits",
    "/gpu-types",
    "/gpu-types/add",
    "/gpu-types/test-80gb",
    "/hosts",
    "/hosts/add",
    "/hosts/{host}",
    "/techniques",
    "/techniques?model=acme/small-llama&gpu=test-80gb&request=chat:1:900:200:64",
    "/account",
    "/nothing-is-here",
]
WINDOWS = [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")]


def rows_of(person):
    plan = a_plan(person, name="first")
    child = a_plan(person, name="second", parent=plan, args={"max_num_seqs": 64})
    return {"plan": plan.pk, "child": child.pk, "host": a_host(person).pk}


@pytest.mark.parametrize(("width", "theme"), WINDOWS)
def test_every_page_is_open_to_everybody(open_page, alice, width, theme):
    rows = rows_of(alice)
    page = open_page("/", alice, viewport={"width": width, "height": 900}, color_scheme=theme)
    found = {}
    for address in PAGES:
        page.goto(address.format(**rows))
        expect(page.locator("main h1").first).to_be_visible()
        if faults := serious_faults(page):
            found[address] = faults
        if sideways := reaches_sideways(page):
            found[f"{address} sideways"] = sideways
    assert found == {}


@pytest.mark.parametrize(("width", "theme"), WINDOWS)
def test_the_sign_in_page_is_open_to_everybody(open_page, width, theme):
    page = open_page("/plans", viewport={"width": width, "height": 900}, color_scheme=theme)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert serious_faults(page) == []
    assert reaches_sideways(page) == 0
