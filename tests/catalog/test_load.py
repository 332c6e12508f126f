"""The catalog in the database: loading is repeatable, renews its own rows, and leaves people's alone."""

from io import StringIO

import pytest
from django.core.management import call_command

from planner import catalog, services
from planner.models import GpuType, ModelSpec, Origin
from tests.factories import a_gpu_type, a_model

pytestmark = pytest.mark.django_db


def counts(loaded):
    return loaded.made, loaded.changed, loaded.unchanged, loaded.kept


def test_the_first_load_makes_every_row():
    loaded = services.catalog_load()
    assert counts(loaded["models"]) == (len(catalog.model_entries()), 0, 0, 0)
    assert counts(loaded["gpu_types"]) == (len(catalog.gpu_entries()), 0, 0, 0)


def test_a_second_load_changes_nothing():
    services.catalog_load()
    stamps = list(GpuType.objects.values_list("updated_at")) + list(ModelSpec.objects.values_list("updated_at"))
    loaded = services.catalog_load()
    assert counts(loaded["models"]) == (0, 0, len(catalog.model_entries()), 0)
    assert counts(loaded["gpu_types"]) == (0, 0, len(catalog.gpu_entries()), 0)
    assert stamps == list(GpuType.objects.values_list("updated_at")) + list(ModelSpec.objects.values_list("updated_at"))


def test_a_row_of_the_catalog_is_renewed():
    services.catalog_load()
    GpuType.objects.filter(slug="l40s").update(total_bytes=1, total_low_bytes=1, total_high_bytes=1)
    before = GpuType.objects.get(slug="l40s").updated_at
    loaded = services.catalog_load()
    row = GpuType.objects.get(slug="l40s")
    assert counts(loaded["gpu_types"]) == (0, 1, len(catalog.gpu_entries()) - 1, 0)
    assert row.core() == catalog.find_gpu("l40s")
    assert row.updated_at > before


def test_rows_that_people_made_are_left_alone(alice):
    a_model(alice, "Qwen/Qwen3-8B")
    a_gpu_type(alice, "L40S", note="ours, with ECC off")
    loaded = services.catalog_load()
    assert loaded["models"].kept == loaded["gpu_types"].kept == 1
    assert ModelSpec.objects.get(name="Qwen/Qwen3-8B").origin == Origin.UPLOAD
    assert GpuType.objects.get(slug="l40s").note == "ours, with ECC off"


def test_a_row_gives_the_arithmetic_what_the_catalog_gives():
    services.catalog_load()
    for gpu in catalog.gpus():
        assert GpuType.objects.get(slug=gpu.slug).core() == gpu
    assert ModelSpec.objects.core_named("Qwen/Qwen3-8B") == catalog.find_model("Qwen/Qwen3-8B")


def test_a_row_names_its_sources_and_its_slices():
    services.catalog_load()
    row = GpuType.objects.get(slug="h200-sxm-141gb")
    assert "https://github.com/vllm-project/vllm/issues/34553" in row.source
    assert "MIG slices: 7 × 1g.18gb" in row.note
    assert row.confidence == "high"


@pytest.mark.parametrize("written", ["qwen3-8b", "NousResearch/Llama-2-70b-hf"])
def test_a_row_is_found_by_every_name_of_its_model(written):
    services.catalog_load()
    assert ModelSpec.objects.core_named(written).name == catalog.full_name(written)


def test_the_command_says_what_it_did():
    out = StringIO()
    call_command("catalog_load", stdout=out)
    assert f"gpu types: {len(catalog.gpu_entries())} new" in out.getvalue()
    quiet = StringIO()
    call_command("catalog_load", verbosity=0, stdout=quiet)
    assert quiet.getvalue() == ""
