"""The workbench in a real browser: the deployment of the published post-mortem, planned, changed, saved and shared."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.looking import reaches_sideways, serious_faults

POST_MORTEM = {
    "model": "meta-llama/Meta-Llama-3-70B-Instruct",
    "gpu": "a100-sxm4-80gb",
    "gpu_count": "4",
    "vllm_version": "0.32.0",
    "tensor_parallel_size": "4",
    "gpu_memory_utilization": "0.9",
    "max_model_len": "8192",
    "request": "burst:1:7680:512::85",
}
ADDRESS = f"/plans/new?{urlencode(POST_MORTEM, safe='/:')}"


def an_address(**changes):
    kept = {name: value for name, value in {**POST_MORTEM, **changes}.items() if value}
    return f"/plans/new?{urlencode(kept, safe='/:')}"


def verdict(page):
    return page.locator(".verdict h1")


def running(page):
    """How many requests of the burst run at once, as the page says it."""
    return int(re.search(r"burst of 85 requests, (\d+) run", page.locator(".verdict").inner_text())[1])


def retyped(page, flag, text):
    """Type into a field and wait for the answer that the typing brings."""
    with page.expect_response(lambda response: "/plans/new?" in response.url and "help" not in response.url):
        page.locator(f"#f-{flag}").fill(text)
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(0)


def test_planning_the_post_mortem_from_an_empty_form(open_page, paula):
    page = open_page("/plans/new", paula)
    expect(page.locator("#answer")).to_contain_text("Choose a model and a GPU")
    page.get_by_label("Model", exact=True).fill(POST_MORTEM["model"])
    page.get_by_label("GPU", exact=True).select_option("a100-sxm4-80gb")
    expect(verdict(page)).to_be_visible()
    page.get_by_label("tensor-parallel-size").select_option("4")
    page.get_by_label("max-model-len").fill("8192")
    expect(verdict(page)).to_contain_text("Fits")
    expect(page).to_have_url(re.compile(r"tensor_parallel_size=4.*max_model_len=8192"))
    expect(page).to_have_title(re.compile("^Fits · Meta-Llama-3-70B-Instruct"))


def test_the_verdict_of_the_burst_stands_first(open_page, bob):
    page = open_page(ADDRESS, bob)
    expect(verdict(page)).to_contain_text("Fits")
    assert 50 < running(page) < 65  # 36 to 38 GiB of KV a rank, 640 MiB a full sequence and rank
    assert verdict(page).bounding_box()["y"] < 200


def test_the_terms_are_those_of_a_hand_calculation(open_page, bob):
    page = open_page(ADDRESS, bob)
    why = page.get_by_role("region", name="Why these numbers")
    # 70,553,706,496 parameters x 2 B / 4 ranks; norms are on every rank: 32.86 GiB
    expect(why.get_by_role("row", name="weights", exact=False).first).to_contain_text("32.8")
    # 2 x 80 layers x 8 heads x 128 x 2 B = 327,680 B over all ranks, a quarter on each
    expect(why).to_contain_text("327,680 B over all ranks, 81,920 B on each")


def test_less_utilization_holds_fewer_and_the_address_follows(open_page, bob):
    page = open_page(ADDRESS, bob)
    before = running(page)
    retyped(page, "gpu_memory_utilization", "0.82")
    expect(page).to_have_url(re.compile(r"gpu_memory_utilization=0\.82"))
    assert running(page) < before
    page.go_back()
    expect(page.locator("#f-gpu_memory_utilization")).to_have_value("0.9")
    assert running(page) == before


def test_two_ranks_are_too_few_and_the_page_says_what_would_do(open_page, bob):
    page = open_page(an_address(tensor_parallel_size="1", gpu_count=""), bob)
    expect(verdict(page)).to_contain_text("Does not fit")  # 131.4 GiB of weights on a GPU of 79
    page.get_by_label("tensor-parallel-size").select_option("4")
    expect(verdict(page)).to_contain_text("Fits")


def test_an_illegal_size_is_visible_greyed_and_has_its_reason(open_page, bob):
    page = open_page(ADDRESS, bob)
    three = page.locator("#f-tensor_parallel_size option[value='3']")
    expect(three).to_be_disabled()
    expect(three).to_contain_text("64")  # attention heads


def test_an_empty_field_means_the_default_and_shows_it(open_page, bob):
    page = open_page(an_address(max_model_len="", gpu_memory_utilization=""), bob)
    expect(page.locator("#f-max_model_len")).to_have_attribute("placeholder", "8192")
    expect(page.locator("#f-gpu_memory_utilization")).to_have_attribute("placeholder", "0.92")  # since 0.20


def test_a_saved_plan_keeps_its_answer_and_an_edit_makes_a_child(open_page, paula):
    page = open_page(ADDRESS, paula)
    page.get_by_label("Name of the plan").fill("burst at 0.90")
    page.get_by_role("button", name="Save plan").click()
    expect(page).to_have_url(re.compile(r"/plans/\d+$"))
    expect(page.locator("h1").first).to_be_visible()
    plan = re.search(r"/plans/(\d+)$", page.url)[1]
    page.goto(an_address(gpu_memory_utilization="0.82") + f"&from={plan}")
    expect(page.locator("#save")).to_contain_text(f"as a child of plan {plan}")
    page.get_by_role("button", name="Save plan").click()
    child = re.search(r"/plans/(\d+)$", page.url)[1]
    page.goto(f"/compare?plan={plan}&plan={child}")
    expect(page.locator("main")).to_contain_text("0.82")
    expect(page.locator("main")).to_contain_text("0.9")


def test_a_shared_address_shows_another_person_the_same(open_page, paula, bob):
    page = open_page(ADDRESS, paula)
    retyped(page, "gpu_memory_utilization", "0.85")
    other = open_page(page.url, bob)
    assert other.locator(".verdict").inner_text() == page.locator(".verdict").inner_text()


def test_a_viewer_looks_and_shares_but_does_not_save(open_page, bob):
    page = open_page(ADDRESS, bob)
    expect(page.get_by_role("button", name="Save plan")).to_have_count(0)
    expect(page.locator("#save")).to_contain_text("Planners save plans")


def test_bad_input_stands_beside_its_field_and_nothing_typed_is_lost(open_page, bob):
    page = open_page(ADDRESS, bob)
    said = verdict(page).inner_text()
    retyped(page, "max_num_seqs", "many")
    expect(page.locator("#e-max_num_seqs")).to_contain_text("'many'")
    expect(page.locator("#f-max_num_seqs")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#f-max_num_seqs")).to_have_value("many")
    expect(page.locator("#problem")).to_contain_text("still the last answer")
    assert verdict(page).inner_text() == said
    page.reload()
    expect(page.locator("#f-max_num_seqs")).to_have_value("many")
    retyped(page, "max_num_seqs", "64")
    expect(page.locator("#problem")).to_be_empty()
    expect(page.locator("#e-max_num_seqs")).to_be_empty()
    expect(verdict(page)).to_contain_text("Fits")


def test_an_unknown_model_is_said_to_be_unknown(open_page, bob):
    page = open_page(an_address(model="acme/nothing-like-it"), bob)
    expect(page.locator(".verdict--unknown")).to_contain_text("acme/nothing-like-it")


def test_a_pasted_command_fills_the_form(open_page, bob):
    page = open_page("/plans/new?gpu=a100-sxm4-80gb", bob)
    page.get_by_text("Paste a vllm serve command").click()
    command = f"vllm serve {POST_MORTEM['model']} -tp 4 --max-model-len 8k --enforce-eager"
    page.get_by_label("A vllm serve command").fill(command)
    page.get_by_role("button", name="Read it").click()
    expect(page.locator("#f-model")).to_have_value(POST_MORTEM["model"])
    expect(page.locator("#f-max_model_len")).to_have_value("8000")
    expect(page.locator("#f-enforce_eager")).to_have_value("true")
    expect(verdict(page)).to_contain_text("Fits")


def test_a_command_that_cannot_be_read_keeps_its_text_and_names_the_flag(open_page, bob):
    page = open_page("/plans/new?gpu=a100-sxm4-80gb", bob)
    page.get_by_text("Paste a vllm serve command").click()
    page.get_by_label("A vllm serve command").fill("vllm serve a/b --max-modle-len 8192")
    page.get_by_role("button", name="Read it").click()
    expect(page.locator("#problem")).to_contain_text("max-model-len")
    expect(page.get_by_label("A vllm serve command")).to_have_value("vllm serve a/b --max-modle-len 8192")


def test_what_would_help_is_a_link_to_the_changed_plan(open_page, bob):
    page = open_page(ADDRESS, bob)
    change = page.get_by_role("link", name="--kv-cache-dtype fp8")
    held = int(re.search(r"(\d+) at once", page.locator(".changes li", has=change).inner_text())[1])
    before = running(page)
    change.click()
    expect(page).to_have_url(re.compile(r"kv_cache_dtype=fp8"))
    assert held > before


def test_it_works_without_javascript(open_page, bob):
    page = open_page(an_address(gpu_memory_utilization=""), bob, java_script_enabled=False)
    page.locator("#f-gpu_memory_utilization").fill("0.85")
    page.locator("#f-gpu_memory_utilization").press("Enter")
    expect(verdict(page)).to_contain_text("Fits")
    assert "gpu_memory_utilization=0.85" in page.url
    assert "max_num_seqs" not in page.url  # only what is set


def test_the_same_question_as_data(open_page, bob):
    page = open_page(ADDRESS, bob)
    answer = page.request.get(ADDRESS.replace("/plans/new?", "/plans/new.json?")).json()
    assert answer["summary"] in verdict(page).inner_text().replace("✓ ", "")
    assert answer["kv_cache"]["bytes_per_token"] == 2 * 80 * 8 * 128 * 2


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_shut_out(open_page, bob, width, theme):
    page = open_page(ADDRESS, bob, viewport={"width": width, "height": 900}, color_scheme=theme)
    expect(page.locator(".changes")).to_be_visible()
    assert serious_faults(page) == []
    assert reaches_sideways(page) == 0


def test_narrow_pages_show_the_verdict_first_and_fold_the_form(open_page, bob):
    page = open_page(ADDRESS, bob, viewport={"width": 400, "height": 800})
    form = page.locator("#question")
    expect(form).to_be_hidden()
    assert verdict(page).bounding_box()["y"] < page.get_by_text("Change the question").bounding_box()["y"]
    page.get_by_text("Change the question").click()
    expect(form).to_be_visible()
    assert reaches_sideways(page) == 0


def test_the_theme_follows_the_system_until_somebody_switches(open_page, bob):
    page = open_page(ADDRESS, bob, color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 22, 28)"
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 251, 249)"
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 251, 249)"


def test_everything_by_keyboard(open_page, bob):
    page = open_page("/plans/new", bob)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    expect(page.locator("#f-model")).to_be_focused()
    page.keyboard.type(POST_MORTEM["model"])
    page.keyboard.press("Escape")  # the list of suggestions
    while page.evaluate("document.activeElement.id") != "f-gpu":
        page.keyboard.press("Tab")
    page.keyboard.type("H100 SXM")
    expect(page.locator(".verdict")).to_be_visible()
    page.locator("#content").focus()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def test_typing_goes_on_while_an_answer_is_under_way(open_page, bob):
    page = open_page(an_address(max_model_len=""), bob)
    page.locator("#f-max_model_len").press_sequentially("8192", delay=180)
    expect(page).to_have_url(re.compile(r"max_model_len=8192"))
    expect(page.locator("#f-max_model_len")).to_have_value("8192")
    expect(page.locator("#f-max_model_len")).to_be_focused()


def test_a_session_that_ended_leads_to_sign_in_and_back(open_page, bob):
    page = open_page(ADDRESS, bob)
    expect(page.locator(".changes")).to_be_visible()
    page.context.clear_cookies()
    page.locator("#f-max_num_seqs").fill("64")
    expect(page).to_have_url(re.compile("/accounts/login/"))
    page.get_by_label("User name").fill("bob")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#f-max_num_seqs")).to_have_value("64")
    expect(verdict(page)).to_contain_text("Fits")


def test_a_server_that_does_not_answer_is_told_and_what_was_typed_stays(open_page, bob):
    page = open_page(ADDRESS, bob)
    expect(page.locator("#unanswered")).to_be_hidden()
    page.context.set_offline(True)
    page.locator("#f-max_num_seqs").fill("64")
    expect(page.locator("#unanswered")).to_contain_text("did not answer")
    expect(page.locator("#f-max_num_seqs")).to_have_value("64")
    page.context.set_offline(False)
    page.locator("#f-max_num_seqs").fill("65")
    expect(page.locator("#unanswered")).to_be_hidden()
    expect(page).to_have_url(re.compile("max_num_seqs=65"))
