"""Saved plans: read on every tab, edited into a child, compared by keys alone."""

import re

import pytest
from playwright.sync_api import expect

from tests.factories import a_plan


@pytest.fixture
def two_plans(site, alice):
    first = a_plan(alice, name="As deployed")
    return first, a_plan(alice, name="Safer", parent=first, args={"gpu_memory_utilization": 0.8})


def test_two_ticked_plans_are_compared_by_one_key(open_page, bob, two_plans):
    page = open_page("/plans", bob)
    for plan in two_plans:
        page.get_by_label(f"Compare plan {plan.pk}, {plan.name}").check()
    page.locator("h1").click()
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile(r"/compare\?plan=\d+&plan=\d+$"))
    expect(page.get_by_role("heading", name="2 plans side by side")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("gpu_memory_utilization"))).to_contain_text("0.8")
    page.get_by_role("link", name="Only differences").click()
    expect(page.get_by_role("heading", name="The same in all")).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("heading", name="The same in all")).to_be_visible()


def test_comparing_needs_no_script(open_page, bob, two_plans):
    page = open_page("/plans", bob, java_script_enabled=False)
    for plan in two_plans:
        page.get_by_label(f"Compare plan {plan.pk}, {plan.name}").check()
    page.get_by_role("button", name="Compare ticked").click()
    expect(page.get_by_role("heading", name="What differs")).to_be_visible()


def test_the_tabs_are_addresses_and_the_verdict_stays(open_page, bob, two_plans):
    page = open_page(f"/plans/{two_plans[0].pk}", bob)
    for tab, heading in (
        ("Capacity", "Requests at once by context"),
        ("Why", "Why these numbers"),
        ("JSON", "The record"),
    ):
        page.get_by_role("link", name=tab, exact=True).click()
        expect(page.get_by_role("heading", name=heading).first).to_be_visible()
        expect(page.locator(".verdict h1")).to_contain_text("Fits")
    expect(page).to_have_url(re.compile("tab=json"))


def test_an_edit_becomes_a_child_and_the_parent_stays(open_page, alice, two_plans):
    parent = two_plans[0]
    page = open_page(f"/plans/{parent.pk}", alice)
    page.get_by_role("link", name="Edit as new").click()
    page.get_by_role("button", name="Save plan").click()
    expect(page.get_by_role("status").filter(has_text="Saved as plan")).to_be_visible()
    expect(page.get_by_role("link", name=f"#{parent.pk} As deployed").first).to_be_visible()


def test_the_list_is_narrowed_in_the_address(open_page, bob, two_plans):
    page = open_page("/plans", bob)
    page.get_by_label("Search", exact=True).fill("safer")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("row", name=re.compile("Safer"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("As deployed"))).to_have_count(0)
    expect(page).to_have_url(re.compile("search=safer"))
