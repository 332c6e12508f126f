"""What the project says of itself, and what its files must not say."""

import re
import subprocess
import sys
import tomllib

import pytest

from tests.house.running import PROJECT

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())
LOCKS = ["base", "dev", "uv"]
REGISTRY_HOSTS = [
    ".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("deb", "debian", "org"))
]
BINARY = {".png", ".ico", ".woff2", ".gz"}


def tracked_files():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name]
    return [PROJECT / name for name in names if (PROJECT / name).is_file() and (PROJECT / name).suffix not in BINARY]


def names_of(requirements):
    return {re.match(r"[A-Za-z0-9._-]+", line)[0].lower().replace("_", "-") for line in requirements}


def pins(lock):
    text = (PROJECT / "requirements" / f"{lock}.txt").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def test_it_is_vllm_planner_under_the_apache_licence():
    project = PYPROJECT["project"]
    assert (project["name"], project["license"]) == ("vllm-planner", "Apache-2.0")
    assert "Apache License" in (PROJECT / "LICENSE").read_text()


def test_it_depends_on_celery_redis_and_nvidia_ml_py_and_offers_vllm_as_an_extra():
    project = PYPROJECT["project"]
    dependencies = names_of(project["dependencies"])
    assert {"celery", "redis", "nvidia-ml-py"} <= dependencies
    assert "pynvml" not in dependencies
    assert names_of(project["optional-dependencies"]["vllm"]) == {"vllm"}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_requirement_is_one_version_with_its_hashes(lock):
    loose = [pin for pin in pins(lock) if not re.match(r"\S+==\S+ .*--hash=sha256:[0-9a-f]{64}", pin)]
    assert loose == []


def test_every_direct_dependency_is_locked():
    direct = names_of(PYPROJECT["project"]["dependencies"])
    assert direct <= names_of(pins("base"))
    assert direct | names_of(PYPROJECT["dependency-groups"]["dev"]) <= names_of(pins("dev"))


def test_both_locks_agree_on_every_version():
    base, dev = ({pin.split()[0] for pin in pins(lock)} for lock in ("base", "dev"))
    assert base <= dev


def test_no_file_names_a_package_registry():
    named = [
        f"{path.relative_to(PROJECT)}: {host}"
        for path in tracked_files()
        for host in REGISTRY_HOSTS
        if host in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert named == []


def test_pages_and_styles_load_nothing_from_another_host():
    foreign = re.compile(
        r"""(?:src|action|data-src|xlink:href)\s*=\s*["']?(?:https?:)?//|url\(\s*["']?(?:https?:)?//"""
    )
    sheets = re.compile(r"""<link[^>]+href\s*=\s*["']?(?:https?:)?//|@import\s+["'](?:https?:)?//""")
    shown = [path for path in tracked_files() if path.suffix in (".html", ".css")]
    assert [path for path in shown if foreign.search(path.read_text()) or sheets.search(path.read_text())] == []


def test_each_room_keeps_to_its_doors():
    linter = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    result = subprocess.run(linter, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_models_and_migrations_agree():
    command = [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"]
    result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
