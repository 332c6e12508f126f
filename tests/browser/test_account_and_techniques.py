"""A token that is shown once, and what each technique does to the plan one comes from."""

import re

from playwright.sync_api import expect

MODEL = "meta-llama/Meta-Llama-3-70B-Instruct"
PLAN = f"model={MODEL}&gpu=a100-sxm4-80gb&gpu_count=4&tensor_parallel_size=4&max_model_len=8192"


def test_a_token_is_made_seen_once_and_revoked(open_page, bob):
    page = open_page("/account", bob)
    page.get_by_label("Name").fill("nightly CI")
    page.get_by_label("Expires after").select_option("30")
    page.get_by_role("button", name="Make the token").click()
    text = page.locator("#token-text").inner_text()
    assert len(text) > 40
    page.goto("/account")
    expect(page.get_by_role("row", name=re.compile("nightly CI"))).to_be_visible()
    assert text not in page.content()
    page.get_by_role("button", name="Revoke nightly CI").click()
    expect(page.get_by_text("No token yet.")).to_be_visible()


def test_the_workbench_hands_its_plan_to_the_techniques(open_page, bob):
    page = open_page(f"/plans/new?{PLAN}&request=mixed:1:1500:500", bob)
    page.get_by_role("link", name="Techniques on this plan").click()
    expect(page.get_by_role("heading", name="Paged memory ✓ usable here")).to_be_visible()
    # 2,000 of 8,192 reserved tokens are used: 75.6 % would stay empty; 125 whole pages of 16 leave nothing.
    expect(page.get_by_role("region", name="Paged memory")).to_contain_text("75.6% → 0.0%")
    page.get_by_role("link", name="Back to the plan").click()
    expect(page).to_have_url(re.compile("request=mixed:1:1500:500"))
