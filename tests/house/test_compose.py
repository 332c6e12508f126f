"""`docker-compose.yml`: valid as Compose defines it, and its very commands started and asked for a plan."""

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import yaml
from celery import Celery

from tests.house.running import PROJECT, clean_environment, free_port, wait_for
from tests.house.servers import postgres_server, valkey_server

COMPOSE = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}


def test_it_is_valid_by_the_published_schema():
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())
    jsonschema.validate(COMPOSE, schema)


def test_the_schema_notices_a_misspelt_key():
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())
    misspelt = {**COMPOSE, "services": {"web": {"comand": ["true"]}}}
    with pytest.raises(jsonschema.ValidationError, match="comand"):
        jsonschema.validate(misspelt, schema)


def test_it_has_the_four_processes_their_servers_and_a_gpu_profile():
    assert set(COMPOSE["services"]) == {"postgres", "valkey", "prepare", "web", "worker", "beat", "gpu-worker"}
    gpu_worker = COMPOSE["services"]["gpu-worker"]
    assert gpu_worker["profiles"] == ["gpu"]
    (device,) = gpu_worker["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}


@pytest.fixture
def stack(tmp_path):
    """Every service of the file, by its own command and environment, beside a real PostgreSQL and Valkey."""
    with ExitStack() as running:
        here = {
            "DATABASE_URL": running.enter_context(postgres_server()),
            "REDIS_URL": running.enter_context(valkey_server()),
            "PLANNER_HOME": str(tmp_path),
            "PLANNER_URL": "http://127.0.0.1:8000",
            "PORT": str(free_port()),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        run(here, "prepare").wait(timeout=120)
        for name in ("web", "worker", "beat"):
            process = run(here, name, log=tmp_path / f"{name}.log")
            running.callback(process.wait, timeout=30)
            running.callback(process.terminate)
        assert wait_for(lambda: answers(f"http://127.0.0.1:{here['PORT']}/readyz"), seconds=90)
        yield here


def run(here, name, log=None):
    """Start one service's command with the variables that the file gives it, their values being those of here."""
    service = COMPOSE["services"][name]
    assert {"DATABASE_URL", "REDIS_URL", "PLANNER_HOME", "PLANNER_URL"} <= set(service["environment"])
    told = {key: here[key] for key in service["environment"] if key in here}
    with (log or Path(os.devnull)).open("wb") as output:
        return subprocess.Popen(
            service["command"],
            cwd=PROJECT,
            env=clean_environment(**told, PATH=here["PATH"]),
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def answers(address):
    try:
        return urllib.request.urlopen(address, timeout=5).status == 200
    except OSError:
        return False


@pytest.mark.postgres
def test_its_very_commands_plan_a_deployment_on_postgresql_and_valkey(stack):
    token = subprocess.run(
        ["python", "manage.py", "token", "compose", "--group", "planner"],
        cwd=PROJECT,
        env=clean_environment(**{key: stack[key] for key in ("DATABASE_URL", "PLANNER_HOME", "PATH")}),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    question = {"model": "a-llama", "config": LLAMA, "gpu": "a100-sxm4-80gb", "args": {"max_model_len": 8192}}
    request = urllib.request.Request(
        f"http://127.0.0.1:{stack['PORT']}/api/v1/estimate",
        data=json.dumps(question).encode(),
        headers={"Authorization": f"Token {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        plan = json.load(response)
    assert plan["verdict"] == "fits"
    # 2 (keys and values) x 32 layers x 8 heads x 128 of a head x 2 bytes
    assert plan["kv_cache"]["bytes_per_token"] == 2 * 32 * 8 * 128 * 2
    assert workers_that_answer(stack["REDIS_URL"]) == {"local"}


def workers_that_answer(broker):
    """The hosts whose worker answers, once one does: it may still be starting when the page is there."""
    control, answers = Celery(broker=broker).control, []
    wait_for(lambda: answers.extend(control.ping(timeout=1)) or answers, seconds=60)
    return {name.partition("@")[0] for answer in answers for name in answer}
