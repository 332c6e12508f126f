"""The page at /api/, where the API can be read and tried: everything from our own host, under the strict policy."""

import json

import pytest

from tests.factories import a_plan


@pytest.fixture
def docs(open_page, alice):
    a_plan(alice)
    page = open_page("/api/", alice)
    page.wait_for_selector("#swagger-ui .opblock")
    return page


def test_every_resource_is_shown(docs):
    shown = docs.locator("#swagger-ui .opblock-summary-path").all_inner_texts()
    paths = {path.replace("\u200b", "") for path in shown}
    assert {"/api/v1/estimate", "/api/v1/plans", "/api/v1/models/{slug}", "/api/v1/hosts/{id}"} <= paths


def test_an_estimate_can_be_tried_by_who_is_signed_in(docs):
    operation = docs.locator("#swagger-ui .opblock").filter(has_text="/api/v1/estimate")
    operation.locator(".opblock-summary").click()
    operation.get_by_role("button", name="Try it out").click()
    body = {"model": "acme/small-llama", "gpu": "test-80gb", "args": {"max_model_len": 4096}}
    operation.locator("textarea").fill(json.dumps(body))
    operation.get_by_role("button", name="Execute").click()
    answer = operation.locator(".live-responses-table .response").first
    answer.locator(".response-col_status").get_by_text("200").wait_for()
    assert '"verdict": "fits"' in answer.inner_text()
