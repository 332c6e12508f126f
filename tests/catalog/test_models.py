"""The models: every file is read, says where it is from, and agrees with what others publish of it."""

import json

import pytest

from planner import catalog
from planner.catalog import model_files
from planner.catalog.model_files import MODELS
from planner.catalog.tables import read_table
from planner.core.errors import Unknown
from planner.core.units import gib

ENTRIES = catalog.model_entries()
LARGEST_FOLDER_BYTES = 1_500_000


def planned():
    found = []
    for entry in ENTRIES:
        try:
            found.append((entry, catalog.find_model(entry.name)))
        except Unknown:
            continue
    return found


PLANNED = planned()
WITH_A_COUNT = [(e, m) for e, m in PLANNED if e.published_parameters_billions]
# Published as 8-bit checkpoints, of which the sources' config.json say nothing.
KEPT_IN_8_BITS = ("mistralai/Ministral-3-3B-Instruct-2512", "mistralai/Mistral-Small-4-119B-2603")
UNQUANTISED = [
    (e, m) for e, m in PLANNED if e.published_size_gib and m.quantization is None and e.name not in KEPT_IN_8_BITS
]


def test_there_are_at_least_sixty_models_and_as_many_that_can_be_planned():
    assert len(ENTRIES) >= 200
    assert len(PLANNED) >= 60


def test_the_folder_is_small():
    assert sum(path.stat().st_size for path in MODELS.iterdir()) < LARGEST_FOLDER_BYTES


def is_founded(entry):
    """A public address, for a file at the revision that was read; or none, and then low confidence."""
    if entry.source == "unattributed":
        return entry.confidence == "low"
    at_a_revision = "/blob/" not in entry.source or (entry.revision and f"/blob/{entry.revision}/" in entry.source)
    return entry.source.startswith("https://") and at_a_revision and entry.confidence in ("high", "medium", "low")


def test_every_entry_says_where_it_is_from():
    assert [entry.name for entry in ENTRIES if not is_founded(entry)] == []


def test_a_file_is_named_after_its_model():
    assert [entry.name for entry in ENTRIES] == list(catalog.model_names())


def test_every_file_is_standard_json():
    def refuse(text):
        raise AssertionError(f"{text} is no JSON")

    for path in MODELS.iterdir():
        assert json.loads(path.read_text(), parse_constant=refuse)["config"], path.name


def reached(config, path):
    for key in path.split("."):
        if key not in config:
            return False
        config = config[key]
    return True


def test_every_key_that_was_filled_in_is_there_with_the_reason():
    filled = [(entry, path, reason) for entry in ENTRIES for path, reason in entry.filled.items()]
    assert len(filled) > 20
    assert [(e.name, path) for e, path, reason in filled if not reason or not reached(e.config, path)] == []


def test_the_facts_of_any_architecture_can_be_shown():
    assert [e.name for e in ENTRIES if not (e.facts.architecture or e.facts.model_type)] == []


# Published counts that hold more than the config.json of the catalog tells: heads to draft with whose key is left out
# (GLM) or whose layers are not planned (Nemotron), and projections of layers that borrow keys (Gemma 4).
HOLDS_MORE = (
    "zai-org/GLM-4.5-Air",
    "zai-org/GLM-4.7-Flash",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8",
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4",
    "google/gemma-4-E4B-it",
)


def nearest(model, published):
    """A checkpoint is published with the heads that it brings to draft with, or without them."""
    counts = (model.parameters, model.parameters + model.predictor_parameters)
    return min(counts, key=lambda count: abs(count - published))


@pytest.mark.parametrize(("entry", "model"), WITH_A_COUNT, ids=lambda part: getattr(part, "name", ""))
def test_the_parameters_are_those_that_are_published(entry, model):
    # 70.6 is rounded to a tenth, 1.78 to a hundredth: half a unit of the last digit is what rounding may hide.
    published = entry.published_parameters_billions.value
    digits = len(str(published).partition(".")[2])
    count = nearest(model, published * 1e9) / 1e9
    if entry.name in HOLDS_MORE:
        assert 0.96 < count / published < 1
    else:
        assert count == pytest.approx(published, rel=0.005, abs=0.51 * 10**-digits)


@pytest.mark.parametrize(("entry", "model"), UNQUANTISED, ids=lambda part: getattr(part, "name", ""))
def test_two_bytes_a_parameter_make_the_published_checkpoint(entry, model):
    published = entry.published_size_gib.value
    count = nearest(model, published / 2 * (1 << 30))
    assert gib(2 * count) == pytest.approx(published, rel=0.008 if entry.name in HOLDS_MORE else 0.005)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # The counts that the model pages of the hub show for their safetensors.
        ("meta-llama/Llama-3.1-8B-Instruct", 8_030_261_248),
        ("meta-llama/Meta-Llama-3-70B-Instruct", 70_553_706_496),
        ("meta-llama/Llama-2-7b-hf", 6_738_415_616),
        ("mistralai/Mistral-7B-Instruct-v0.3", 7_248_023_552),
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
        ("Qwen/Qwen3-8B", 8_190_735_360),
        ("microsoft/phi-2", 2_779_683_840),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", 10_670_220_835),
    ],
)
def test_known_checkpoints_have_their_parameters_to_the_last(name, parameters):
    assert catalog.find_model(name).parameters == parameters


@pytest.mark.parametrize(
    ("name", "longest"),
    [
        ("meta-llama/Llama-2-70b-hf", 4096),
        ("meta-llama/Meta-Llama-3-70B-Instruct", 8192),
        ("meta-llama/Llama-3.3-70B-Instruct", 131072),
        ("mistralai/Mistral-7B-Instruct-v0.3", 32768),
        ("Qwen/Qwen2.5-72B-Instruct", 32768),
        ("Qwen/Qwen3-32B", 40960),
    ],
)
def test_the_longest_length_is_that_of_the_published_configuration(name, longest):
    assert catalog.find_model(name).derived_max_model_len == longest


def test_a_quantised_checkpoint_is_never_taken_for_a_16_bit_one():
    # Its config.json says nothing of it: hf_quant_config.json beside it does.
    quantization = catalog.find_model("nvidia/Llama-3.1-70B-Instruct-FP8").quantization
    assert (quantization.method, quantization.kv_cache) == ("modelopt", "fp8")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("qwen/qwen3-8b", "Qwen/Qwen3-8B"),
        (" Qwen/Qwen3-8B/ ", "Qwen/Qwen3-8B"),
        ("Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("gpt2", "gpt2"),
        ("openai-community/gpt2", "gpt2"),
        ("NousResearch/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
    ],
)
def test_a_model_is_found_as_it_is_written(written, name):
    assert catalog.find_entry(written).name == name
    assert catalog.full_name(written) == name


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(Unknown) as fault:
        catalog.find_model("meta-llama/Llama-3.3-70B")
    assert fault.value.field == "model"
    assert "meta-llama/Llama-3.3-70B-Instruct" in fault.value.fix
    assert catalog.full_name("acme/own-model") == "acme/own-model"


def test_an_alias_leads_to_a_model_and_hides_none():
    names = {name.lower() for name in catalog.model_names()}
    for row in read_table("model_aliases.yaml")["aliases"]:
        assert row["of"] in catalog.model_names()
        assert row["alias"].lower() not in names
        assert row["why"] in ("renamed", "mirror", "same", "base")


def test_one_look_up_reads_one_file(monkeypatch):
    model_files._read.cache_clear()
    catalog.find_config("Qwen/Qwen3-14B")
    assert model_files._read.cache_info().currsize == 1
