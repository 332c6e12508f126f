"""How people name models and GPUs in a question, and which row is meant."""

import pytest

from planner.core.errors import Unknown
from planner.models import GpuType, ModelSpec
from planner.services import catalog_load
from tests.factories import a_gpu_type, a_model

LLAMA = "meta-llama/Meta-Llama-3-70B-Instruct"


@pytest.mark.parametrize("name", [LLAMA, LLAMA.lower(), "Meta-Llama-3-70B-Instruct"])
def test_a_model_is_found_in_any_case_and_without_its_organisation(db, name):
    catalog_load()
    assert ModelSpec.objects.core_named(name).name == LLAMA


def test_a_model_of_ones_own_goes_before_the_one_that_the_catalog_calls_so(alice):
    catalog_load()
    a_model(alice, "Meta-Llama-3-70B-Instruct")
    assert ModelSpec.objects.core_named("Meta-Llama-3-70B-Instruct").num_layers == 4


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("a100-sxm4-80gb", "a100-sxm4-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("H200 SXM 141GB", "h200-sxm-141gb"),
    ],
)
def test_a_gpu_is_found_by_slug_and_by_the_name_that_nvidia_smi_prints(db, name, slug):
    catalog_load()
    assert GpuType.objects.core_named(name).slug == slug
    assert GpuType.objects.row_named(name).slug == slug


def test_a_mig_slice_can_be_planned_for_without_a_row_of_its_own(db):
    catalog_load()
    whole = GpuType.objects.core_named("a100-sxm4-80gb")
    part = GpuType.objects.core_named("A100 SXM4 80GB MIG 3g.40gb")
    assert part.total_bytes < whole.total_bytes
    with pytest.raises(Unknown):
        GpuType.objects.row_named("A100 SXM4 80GB MIG 3g.40gb")


def test_a_name_that_nobody_has_comes_with_the_nearest(alice):
    a_model(alice)
    a_gpu_type(alice)
    with pytest.raises(Unknown, match="acme/small-llama"):
        ModelSpec.objects.core_named("acme/smal-llama")
    with pytest.raises(Unknown, match="test-80gb"):
        GpuType.objects.core_named("tst-80gb")
