"""Names as logs write them."""

import pytest

from planner import catalog
from planner.accuracy.naming import is_variant_of, release_of, resolve_gpu, resolve_model
from planner.core.errors import Unknown


def found(name):
    return catalog.find_entry(name).name


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("0.19.0", "0.19.0"),
        ("v0.9.2", "0.9.2"),
        ("0.19.x", "0.19.0"),
        ("0.30", "0.30.0"),
        ("0.27.1 (NGC 26.08)", "0.27.1"),
        ("0.26.1rc1.dev608", "0.26.1rc1.dev608"),
        ("0.11.2.post2", "0.11.2.post2"),
        ("0.26-0.27", "0.26.0"),
        ("main 2a4dbe2 (2026-01)", "0.15.0"),
        ("main 2a4dbe2", ""),
        ("fork SM70 (0.22-based)", ""),
    ],
)
def test_a_version_text_starts_with_its_release(text, release):
    assert release_of(text) == release


@pytest.mark.parametrize(
    "name",
    [
        "H100 80GB",
        "H100",
        "NVIDIA H100 80GB HBM3",
        "h100-sxm5-80gb",
        "H100 80GB (a3-highgpu-1g)",
        "2x H100 80GB",
        "H100 × 8",
    ],
)
def test_a_gpu_is_found_by_what_people_call_it(name):
    gpu, _ = resolve_gpu(name, None, catalog.gpus(), catalog.find_gpu)
    assert gpu.slug == "h100-sxm5-80gb"


def test_the_logged_total_tells_a_40_gb_card_from_an_80_gb_one():
    small, guessed = resolve_gpu("A100", 39.49, catalog.gpus(), catalog.find_gpu)
    large, _ = resolve_gpu("A100", 79.25, catalog.gpus(), catalog.find_gpu)
    assert (small.slug, large.slug) == ("a100-sxm4-40gb", "a100-sxm4-80gb")
    assert not guessed


def test_a_card_of_two_sizes_without_a_total_is_a_guess():
    assert resolve_gpu("A100", None, catalog.gpus(), catalog.find_gpu)[1]


def test_a_gpu_nobody_knows_is_unknown():
    with pytest.raises(Unknown):
        resolve_gpu("Voodoo 3", None, catalog.gpus(), catalog.find_gpu)


@pytest.mark.parametrize("name", ["Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b-instruct", "someone/Qwen2.5-7B-Instruct"])
def test_a_model_is_found_with_or_without_its_organisation(name):
    model, is_relative = resolve_model(name, catalog.model_names(), found)
    assert model == "Qwen/Qwen2.5-7B-Instruct"
    assert not is_relative


def test_another_tuning_of_a_model_is_a_relative():
    model, is_relative = resolve_model("Qwen/Qwen3-14B-Base", catalog.model_names(), found)
    assert model == "Qwen/Qwen3-14B"
    assert is_relative


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("NousResearch/Hermes-3-Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"),
        ("me/my-qwen3-14b-tuned", "Qwen/Qwen3-14B"),
    ],
)
def test_a_name_that_contains_a_model_s_name_is_a_tuning_of_it(name, base):
    model, is_relative = resolve_model(name, catalog.model_names(), found)
    assert catalog.find_model(model).layers == catalog.find_model(base).layers
    assert is_relative


def test_part_of_a_number_is_not_a_name():
    with pytest.raises(Unknown):
        resolve_model("me/xqwen3-14b5", catalog.model_names(), found)


def test_unlike_cards_are_planned_as_the_first_of_them():
    gpu, _ = resolve_gpu("RTX 3090 24GB + RTX 5090 32GB", None, catalog.gpus(), catalog.find_gpu)
    assert gpu.slug == "rtx-3090"


@pytest.mark.parametrize("name", ["RTX 5090", "rtx 5090", "2x RTX 5090", "RTX 5090 x 2"])
def test_the_x_of_a_card_s_name_is_no_multiplication(name):
    assert resolve_gpu(name, None, catalog.gpus(), catalog.find_gpu)[0].slug == "rtx-5090"


def test_a_name_with_the_words_of_a_quantisation_after_it_is_the_model_s_own():
    assert is_variant_of("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.3-70B-Instruct")
    assert not is_variant_of("me/my-llama-tuned", "meta-llama/Llama-3.3-70B-Instruct")
