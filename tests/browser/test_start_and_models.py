"""From one line of words, or from the list of models, to an answer."""

import json
import re

from playwright.sync_api import expect

from tests.factories import a_config

LLAMA = "meta-llama/Meta-Llama-3-70B-Instruct"


def verdict(page):
    return page.locator(".verdict h1")


def test_one_line_of_words_leads_to_a_verdict(open_page, bob):
    page = open_page("/", bob)
    page.keyboard.press("/")
    page.keyboard.type(f"{LLAMA} on 4 x A100 SXM4 80GB")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/plans/new\?model=.*gpu=a100-sxm4-80gb&gpu_count=4&tensor_parallel_size=4"))
    expect(verdict(page)).to_contain_text("Fits")


def test_a_line_that_means_several_things_is_settled_by_a_click(open_page, bob):
    page = open_page("/", bob)
    page.get_by_label("Model and GPU, or a vllm serve command").fill("meta llama 3 70b on A100 SXM4 80GB")
    page.get_by_role("button", name="Plan it").click()
    expect(page.get_by_role("heading", name="Did you mean")).to_be_visible()
    page.get_by_role("link", name=f"{LLAMA} on 1 × A100 SXM4 80GB", exact=True).click()
    expect(verdict(page)).to_contain_text("Does not fit")


def test_a_model_is_found_and_its_matrix_leads_to_the_workbench(open_page, bob):
    page = open_page("/models", bob)
    page.keyboard.press("/")
    page.keyboard.type("llama 3 70b instruct")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=LLAMA, exact=True).click()
    expect(page.get_by_text("320 KiB, with fp8 160 KiB")).to_be_visible()
    row = page.get_by_role("row", name=re.compile("^H200 SXM 141GB"))
    row.get_by_role("link").nth(3).click()
    expect(page).to_have_url(re.compile("gpu=h200-sxm-141gb&gpu_count=4&tensor_parallel_size=4"))
    expect(verdict(page)).to_contain_text("Fits")


def test_the_matrix_is_a_page_of_its_own_without_scripts(open_page, bob):
    page = open_page(f"/models/{LLAMA.lower().replace('/', '--')}", bob, java_script_enabled=False)
    page.get_by_role("link", name="Every GPU type, one to eight of them").click()
    expect(page.get_by_role("row", name=re.compile("^A100 SXM4 80GB"))).to_be_visible()


def test_a_pasted_config_becomes_a_model_that_can_be_planned(open_page, paula):
    page = open_page("/models/add", paula)
    section = page.get_by_role("region", name=re.compile("By its config.json"))
    section.get_by_label("Name").fill("our-team/small")
    section.get_by_label("or paste it").fill(json.dumps(a_config())[:-1])
    section.get_by_role("button", name="Add from the file").click()
    expect(section.locator(".error")).to_contain_text("not valid JSON")
    expect(section.get_by_label("Name")).to_have_value("our-team/small")
    section.get_by_label("or paste it").fill(json.dumps(a_config()))
    section.get_by_role("button", name="Add from the file").click()
    expect(page.get_by_role("status")).to_contain_text("our-team/small is on the list")
    page.get_by_role("link", name="Plan it").click()
    expect(page.get_by_label("Model", exact=True)).to_have_value("our-team/small")
