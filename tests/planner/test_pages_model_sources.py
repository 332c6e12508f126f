"""A model's page says where its facts come from, which of them were filled in, and what others publish."""

import pytest

from planner import services
from tests.factories import a_model


@pytest.fixture
def page(client, bob):
    services.catalog_load()
    client.force_login(bob)
    return lambda slug: client.get(f"/models/{slug}").content.decode()


def test_a_transcription_is_shown_as_unverified(page):
    assert "medium, unverified" in page("meta-llama--llama-3.3-70b-instruct")
    assert "unverified" not in page("qwen--qwen3-8b")


def test_a_key_that_was_filled_in_says_where_from(page):
    shown = page("meta-llama--llama-2-70b-hf")
    assert "max_position_embeddings" in shown
    assert "2,048 in the first published revision, 4,096 since" in shown


def test_what_others_publish_stands_beside_ours(page):
    shown = page("meta-llama--llama-3.1-8b-instruct")
    assert "8.03 B" in shown
    assert "14.96 GiB" in shown


def test_a_model_that_somebody_added_has_no_such_lines(client, alice):
    a_model(alice, "acme/small-llama")
    client.force_login(alice)
    assert client.get("/models/acme--small-llama.json").json()["provenance"] is None
