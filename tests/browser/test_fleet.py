"""Hosts and GPU types from a sheet: nothing is added while a line is wrong, and nothing typed is lost."""

import re

from playwright.sync_api import expect


def test_a_sheet_of_hosts_is_mended_on_the_page_and_added_whole(open_page, alice):
    page = open_page("/hosts", alice)
    page.get_by_role("link", name="Add hosts").click()
    page.get_by_label("CSV file", exact=True).set_input_files(
        {
            "name": "hosts.csv",
            "mimeType": "text/csv",
            "buffer": b"name,gpu_type,gpu_count\ngpu-01,a100-sxm4-80gb,8\ngpu-02,a100-sxm4-81gb,8\n",
        }
    )
    page.get_by_role("button", name="Add all lines").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was added: 1 fault")
    expect(page.get_by_role("row", name=re.compile("^3 gpu_type"))).to_contain_text("did you mean")
    pasted = page.get_by_label("or paste it")
    pasted.fill(pasted.input_value().replace("81gb", "80gb"))
    page.get_by_role("button", name="Add all lines").click()
    expect(page.get_by_role("status")).to_contain_text("2 hosts added")
    expect(page.get_by_role("row", name=re.compile("^gpu-02"))).to_contain_text("8")


def test_a_host_is_where_a_plan_starts(open_page, alice):
    page = open_page("/hosts/add", alice)
    page.get_by_label("Name").fill("gpu-01")
    page.get_by_label("Gpu type").fill("NVIDIA A100-SXM4-80GB")
    page.get_by_label("GPUs").fill("8")
    page.get_by_role("button", name="Add the host").click()
    page.get_by_role("link", name="Plan on this host").click()
    expect(page.get_by_label("GPU", exact=True)).to_have_value("a100-sxm4-80gb")
    expect(page.get_by_label("GPUs at hand")).to_have_value("8")


def test_a_viewer_is_told_why_a_form_is_closed(open_page, bob):
    page = open_page("/gpu-types", bob)
    expect(page.get_by_role("link", name="Add GPU types")).to_have_count(0)
    page.goto("/gpu-types/add")
    expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("operators also add GPU types")
