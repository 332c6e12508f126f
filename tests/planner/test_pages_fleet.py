"""Hosts and GPU types: lists, records, and rows added by hand or from a CSV file."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from planner.core.units import GIB
from planner.models import GpuType, Host
from tests.factories import a_gpu_type, a_host

GPU_CSV = """name,total_gib,total_low_gib,total_high_gib,memory_bandwidth_gb_per_second,bf16_tflops,aliases
Alpha 80GB,79.25,79.14,79.35,2039,312,NVIDIA ALPHA-80GB|ALPHA
Beta 24GB,23.6,,,1008,165,
"""


@pytest.fixture
def operator(client, alice):
    client.force_login(alice)
    return client


def upload(text, name="rows.csv"):
    return SimpleUploadedFile(name, text.encode())


def test_a_gpu_type_shows_memory_as_cuda_sees_it_with_its_source(operator, alice):
    a_gpu_type(alice, source="https://example.org/boot-log", memory_bandwidth_bytes_per_second=2_039_000_000_000)
    html = operator.get("/gpu-types/test-80gb").content.decode()
    assert "78.00–80.00 GiB" in html
    assert "2,039 GB/s" in html
    assert "https://example.org/boot-log" in html


def test_the_hosts_that_have_a_gpu_type_are_listed_with_it(operator, alice):
    a_host(alice, "node-7", gpu_type=a_gpu_type(alice), gpu_count=4)
    assert "node-7" in operator.get("/gpu-types/test-80gb").content.decode()


def test_an_unknown_gpu_type_is_not_found(operator):
    assert operator.get("/gpu-types/h9000").status_code == 404
    assert operator.get("/gpu-types/h9000.json").json()["status"] == 404


def test_lists_are_searched_sorted_and_paged_by_the_address(operator, alice):
    gpu = a_gpu_type(alice)
    for number in range(60):
        a_host(alice, f"node-{number:02}", gpu_type=gpu)
    data = operator.get("/hosts.json?page=2&ordering=-name").json()
    assert (data["count"], data["pages"], data["page"]) == (60, 2, 2)
    assert data["results"][0]["name"] == "node-09"
    assert operator.get("/hosts.json?search=node-5").json()["count"] == 10
    html = operator.get("/hosts?search=node&page=1").content.decode()
    assert "?search=node&amp;page=2" in html


def test_a_list_asks_the_database_the_same_however_long_it_is(operator, alice, django_assert_max_num_queries):
    gpu = a_gpu_type(alice)
    for number in range(30):
        a_host(alice, f"node-{number}", gpu_type=gpu)
    with django_assert_max_num_queries(8):
        operator.get("/hosts")
    with django_assert_max_num_queries(8):
        operator.get("/gpu-types")


def test_a_host_is_added_by_hand_under_any_name_of_its_gpu(operator, alice):
    a_gpu_type(alice, aliases=["NVIDIA TEST-80GB"])
    answer = operator.post("/hosts/add", {"name": "gpu-01", "gpu_type": "NVIDIA Test-80GB", "gpu_count": "8"})
    host = Host.objects.get(name="gpu-01")
    assert answer.url == f"/hosts/{host.pk}"
    assert (host.gpu_type.slug, host.gpu_count) == ("test-80gb", 8)


def test_a_refused_host_keeps_what_was_typed_and_names_the_field(operator, alice):
    a_gpu_type(alice)
    answer = operator.post("/hosts/add", {"name": "gpu-01", "gpu_type": "test-90gb", "gpu_count": "8"})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="gpu-01"' in html
    assert "did you mean test-80gb?" in html
    assert not Host.objects.exists()


def test_a_taken_name_is_told_beside_its_field(operator, alice):
    a_host(alice, "gpu-01")
    gpu = GpuType.objects.get()
    answer = operator.post("/hosts/add", {"name": "gpu-01", "gpu_type": gpu.slug, "gpu_count": "1"})
    assert answer.status_code == 422
    assert 'id="id_name_error"' in answer.content.decode()


def test_a_gpu_type_by_hand_is_kept_in_bytes(operator):
    form = {"name": "Gamma 48GB", "total_gib": "47.5", "total_low_gib": "47.4", "bf16_tflops": "362", "pcie": "4.0 x16"}
    assert operator.post("/gpu-types/add", form).url == "/gpu-types/gamma-48gb"
    gpu = GpuType.objects.get(slug="gamma-48gb")
    assert gpu.total_bytes == gpu.total_high_bytes == int(47.5 * GIB)
    assert gpu.total_low_bytes == round(47.4 * GIB)
    assert gpu.bf16_flops == 362e12
    assert gpu.origin == "hand"


def test_a_range_that_does_not_hold_its_total_is_refused(operator):
    answer = operator.post("/gpu-types/add", {"name": "Gamma", "total_gib": "40", "total_low_gib": "41"})
    assert answer.status_code == 422
    assert "between the lowest and the highest" in answer.content.decode()


@pytest.mark.parametrize("figure", ["1e300", "inf", "nan", "-1", "0", "much"])
def test_a_total_that_no_card_has_is_refused(operator, figure):
    answer = operator.post("/gpu-types/add", {"name": "Gamma", "total_gib": figure})
    assert answer.status_code == 422
    assert 'id="id_total_gib_error"' in answer.content.decode()


def test_a_csv_file_adds_all_its_gpu_types(operator):
    assert operator.post("/gpu-types/import", {"file": upload(GPU_CSV)}).url == "/gpu-types"
    alpha = GpuType.objects.get(slug="alpha-80gb")
    assert (alpha.total_low_bytes, alpha.aliases) == (round(79.14 * GIB), ["NVIDIA ALPHA-80GB", "ALPHA"])
    assert GpuType.objects.count() == 2


def test_one_bad_line_keeps_the_whole_file_out_and_its_text_in_the_form(operator):
    text = GPU_CSV + "Delta,not a number,,,,,\n" + "Epsilon,,,,,,\n"
    answer = operator.post("/gpu-types/import", {"file": upload(text)})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert "Nothing was added: 2 faults" in html
    assert '<td class="number">4</td><td class="mono">total_gib</td>' in html
    assert '<td class="number">5</td><td class="mono">total_gib</td>' in html
    assert "Alpha 80GB,79.25" in html
    assert not GpuType.objects.exists()


def test_two_hosts_of_one_name_in_a_file_are_a_fault_of_the_second(operator, alice):
    a_gpu_type(alice)
    text = "name,gpu_type,gpu_count\nnode-1,test-80gb,8\nnode-1,test-80gb,8\n"
    answer = operator.post("/hosts/import", {"text": text})
    assert answer.status_code == 422
    assert '<td class="number">3</td>' in answer.content.decode()
    assert not Host.objects.exists()


def test_pasted_lines_add_hosts(operator, alice):
    a_gpu_type(alice)
    answer = operator.post(
        "/hosts/import", {"text": "name;gpu_type\nnode-1;test-80gb\nnode-2;Test 80GB\n"}, follow=True
    )
    assert "2 hosts added." in answer.content.decode()
    assert list(Host.objects.values_list("name", "gpu_count")) == [("node-1", 1), ("node-2", 1)]


def test_a_file_that_is_no_text_is_told(operator):
    answer = operator.post("/hosts/import", {"file": SimpleUploadedFile("rows.xlsx", b"PK\x03\x04\xff\xfe")})
    assert answer.status_code == 422
    assert "not UTF-8 text" in answer.content.decode()


def test_an_empty_upload_says_what_to_choose(operator):
    answer = operator.post("/hosts/import", {})
    assert answer.status_code == 422
    assert "Choose a file, or paste its text" in answer.content.decode()


def test_bob_may_not_add_by_any_way(client, bob):
    client.force_login(bob)
    for address in ("/hosts/add", "/hosts/import", "/gpu-types/add", "/gpu-types/import"):
        assert client.post(address, {"name": "x"}).status_code == 403
