"""Home: one line to start from, the last plans, and what is known here."""

import pytest

from tests.factories import a_gpu_type, a_model, a_plan


def start(client, line):
    return client.get("/start", {"q": line})


@pytest.fixture
def bobs(client, bob):
    client.force_login(bob)
    return client


def test_the_last_plans_are_shown_with_their_verdicts(bobs, alice):
    plan = a_plan(alice, name="Desk")
    html = bobs.get("/").content.decode()
    assert f'href="/plans/{plan.pk}"' in html
    assert plan.summary in html


def test_counts_are_data_too(bobs, alice):
    a_plan(alice)
    assert bobs.get("/.json").json()["counts"] == {"models": 1, "gpu_types": 1, "hosts": 0, "plans": 1}


def test_an_empty_house_says_the_next_step(bobs):
    assert "No plan is saved yet" in bobs.get("/").content.decode()


def test_charlie_reads_how_to_get_in(client, charlie, alice):
    a_plan(alice, name="Desk")
    client.force_login(charlie)
    html = client.get("/").content.decode()
    assert "in no group yet" in html
    assert "Desk" not in html


def test_a_line_that_means_one_thing_leads_to_the_workbench(bobs, alice):
    a_model(alice), a_gpu_type(alice)
    answer = start(bobs, "small llama on 4 x test 80gb")
    assert answer.status_code == 302
    assert answer.url == ("/plans/new?model=acme%2Fsmall-llama&gpu=test-80gb&gpu_count=4&tensor_parallel_size=4")


def test_an_exact_name_wins_over_longer_ones(bobs, alice):
    a_model(alice), a_model(alice, "acme/small-llama-instruct")
    assert start(bobs, "acme/small-llama").url == "/plans/new?model=acme%2Fsmall-llama"


def test_a_line_that_may_mean_several_things_asks_which(bobs, alice):
    a_model(alice), a_model(alice, "acme/small-llama-instruct")
    answer = start(bobs, "small llama")
    assert answer.status_code == 200
    html = answer.content.decode()
    assert "Did you mean" in html
    assert html.count("/plans/new?model=") == 2


def test_a_line_that_means_nothing_here_is_kept_and_told(bobs):
    html = start(bobs, "gigantic-9000 on a toaster").content.decode()
    assert "No model and GPU type here match" in html
    assert 'value="gigantic-9000 on a toaster"' in html


def test_a_pasted_command_goes_to_the_workbench_as_it_is(bobs):
    answer = start(bobs, "vllm serve acme/small-llama --max-model-len 4096")
    assert answer.url.startswith("/plans/new?command=vllm+serve+acme%2Fsmall-llama")


def test_markup_in_the_line_is_shown_not_run(bobs):
    assert "<b>x</b>" not in start(bobs, "<b>x</b>").content.decode()


def test_the_page_asks_the_database_the_same_however_many_plans_there_are(bobs, alice, django_assert_max_num_queries):
    for _ in range(3):
        a_plan(alice)
    bobs.get("/")
    with django_assert_max_num_queries(9):
        bobs.get("/")
