"""People and rows for tests, made by plain functions."""

from itertools import count

from django.contrib.auth.models import User
from rest_framework.test import APIClient

from planner import accounts, services
from planner.core.units import GIB
from planner.models import GpuType, Host, ModelSpec, Plan

PASSWORD = "correct horse battery"
_number = count(1)


def a_person(name, *, group, password=PASSWORD):
    accounts.groups_ensure()  # a test with a live server empties every table before the next
    if group:
        return accounts.user_add(name=name, group=group, password=password)
    return User.objects.create_user(name, password=password)


def api_of(user):
    """A client of the API that sends this person's token."""
    _, text = accounts.token_create(user=user, name="test")
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {text}")
    return client


def a_config(**keys):
    """The config.json of a small dense Llama: 4 layers of width 1,024, 16 query and 4 KV heads of 64."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 4,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
        "torch_dtype": "bfloat16",
        **keys,
    }


def a_model(user, name="acme/small-llama", **keys) -> ModelSpec:
    return services.model_add_from_config(user=user, name=name, config=a_config(**keys), source="a test")


def a_gpu_type(user, name="Test 80GB", **columns) -> GpuType:
    total = {"total_bytes": 79 * GIB, "total_low_bytes": 78 * GIB, "total_high_bytes": 80 * GIB}
    return services.gpu_type_add(user=user, name=name, **{"compute_capability": "8.0", **total, **columns})


def a_host(user, name=None, gpu_type=None, **columns) -> Host:
    name = name or f"node-{next(_number)}"
    return services.host_add(user=user, name=name, gpu_type=gpu_type or a_gpu_type(user, f"{name} GPU"), **columns)


def the_inputs(**changes):
    """A question about the small Llama on the test GPU."""
    args = {"max_model_len": 4096, **changes.pop("args", {})}
    return {"model": "acme/small-llama", "gpu": "test-80gb", "gpu_count": 1, "args": args, **changes}


def a_plan(user, *, name="", parent=None, **changes) -> Plan:
    """A saved plan; its model and GPU type are made when they are not there yet."""
    if not ModelSpec.objects.filter(name="acme/small-llama").exists():
        a_model(user)
    if not GpuType.objects.filter(slug="test-80gb").exists():
        a_gpu_type(user)
    return services.plan_save(user=user, inputs=the_inputs(**changes), name=name, parent=parent)
