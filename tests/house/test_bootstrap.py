"""A bare machine: only Python, and packages from wherever this machine may have them."""

import base64
import functools
import hashlib
import http.server
import importlib.util
import shutil
import subprocess
import sys
import threading
import zipfile

import pytest

from planner import bootstrap, package_sources
from tests.house.running import PROJECT, clean_environment

PLACES = ("PIP_", "UV_")


@pytest.fixture
def wheel(tmp_path):
    """A wheel of one empty module, made here: `brick` 1.0."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    path = folder / "brick-1.0-py3-none-any.whl"
    files = {
        "brick.py": "",
        "brick-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: brick\nVersion: 1.0\n",
        "brick-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={record_hash(text)},{len(text)}\n" for name, text in files.items())
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, "brick-1.0.dist-info/RECORD": record}.items():
            archive.writestr(name, text)
    return path


def record_hash(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def bare_project(tmp_path, wheel):
    """The files that `manage.py` needs before Django, with a lock of that one wheel."""
    project = tmp_path / "project"
    (project / "planner").mkdir(parents=True)
    (project / "requirements").mkdir()
    for name in ("manage.py", "planner/__init__.py", "planner/bootstrap.py", "planner/package_sources.py"):
        shutil.copy(PROJECT / name, project / name)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for name in ("base", "dev"):
        (project / "requirements" / f"{name}.txt").write_text(f"brick==1.0 --hash=sha256:{digest}\n")
    shutil.copy(PROJECT / "requirements" / "uv.txt", project / "requirements")
    return project


def install(project, **told):
    environment = {name: value for name, value in clean_environment().items() if not name.startswith(PLACES)} | {
        "PIP_CONFIG_FILE": "/dev/null",
        **told,
    }
    code = "from planner import bootstrap; bootstrap.ensure_installed('base')"
    python = getattr(sys, "_base_executable", sys.executable)
    return subprocess.run(
        [python, "-c", code], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def has_brick(project):
    python = project / ".venv" / "bin" / "python"
    return subprocess.run([python, "-c", "import brick"], check=False).returncode == 0


def test_a_wheelhouse_is_enough_even_without_uv_in_it(bare_project, wheel):
    result = install(bare_project, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheel.parent))
    assert result.returncode == 0, result.stderr
    assert has_brick(bare_project)


def test_what_is_installed_already_is_not_installed_again(bare_project, wheel):
    install(bare_project, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheel.parent))
    again = install(bare_project, PIP_NO_INDEX="1", PIP_FIND_LINKS="/dev/null")
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.parametrize("setting", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_a_private_index_is_used_under_the_name_that_pip_or_uv_gives_it(setting, bare_project, wheel, tmp_path):
    index = tmp_path / "simple"
    (index / "brick").mkdir(parents=True)
    shutil.copy(wheel, index / "brick")
    (index / "brick" / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result = install(bare_project, **{setting: f"http://127.0.0.1:{server.server_port}/simple/"})
        server.shutdown()
    assert result.returncode == 0, result.stderr
    assert has_brick(bare_project)


def test_a_changed_wheel_is_refused_and_the_ways_out_are_told(bare_project, wheel):
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("more.py", "")
    result = install(bare_project, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheel.parent))
    assert result.returncode == 1
    assert "do not match the hashes" in result.stderr.lower().replace("\n", " ")
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("The packages of base.txt could not be installed (pip says why above).")
    assert "PIP_NO_INDEX=1 and PIP_FIND_LINKS" in last


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_venv_or_ensurepip_is_told_which_package_brings_it(module, monkeypatch, tmp_path):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else found(name))
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    with pytest.raises(SystemExit, match=rf"^This Python has no {module}, .* apt install python3-venv$"):
        bootstrap.make_venv()


def test_a_read_only_checkout_is_told_in_a_line(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / "file" / ".venv")
    with pytest.raises(SystemExit, match=r"\.venv cannot be made \(Not a directory\)\. Copy the project to a folder"):
        bootstrap.make_venv()


def test_an_old_python_is_told_which_one_is_needed():
    code = (
        "import runpy, sys; sys.version_info = (3, 9, 2); sys.version = '3.9.2 (old)'; "
        "runpy.run_path('manage.py', run_name='__main__')"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert told.stderr == "vLLM Planner needs Python 3.11 or newer; this is 3.9.2. Run: python3.11 manage.py\n"


def test_manage_py_itself_can_be_read_by_an_old_python():
    import ast

    ast.parse((PROJECT / "manage.py").read_text(), feature_version=(3, 6))


def test_test_hands_its_arguments_to_pytest():
    result = subprocess.run(
        [sys.executable, "manage.py", "test", "--version"],
        cwd=PROJECT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0
    assert result.stdout.startswith("pytest ")


class TestPackageSources:
    """pip's words told to uv, and uv's to pip."""

    def test_pip_config_files_and_environment_are_read_and_the_environment_comes_first(self):
        listing = "global.index-url='http://a/simple'\n:env:.index-url='http://b/simple'\ninstall.no-index='true'\n"
        assert package_sources.pip_settings(listing) == {"index-url": "http://b/simple", "no-index": "true"}

    def test_uv_is_told_what_pip_was_told(self):
        pip = {"index-url": "http://a/simple", "extra-index-url": "http://b http://c", "cert": "http://ca.pem"}
        assert package_sources.for_uv(pip, {}) == {
            "UV_DEFAULT_INDEX": "http://a/simple",
            "UV_INDEX": "http://b http://c",
            "SSL_CERT_FILE": "http://ca.pem",
        }

    @pytest.mark.parametrize("own", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
    def test_what_uv_was_told_itself_stays(self, own):
        assert package_sources.for_uv({"index-url": "http://a/simple"}, {own: "http://mine"}) == {}

    def test_a_folder_that_is_not_there_is_left_out_for_uv(self, tmp_path):
        pip = {"find-links": f"/nowhere/wheels {tmp_path}", "extra-index-url": "file:///nowhere/simple"}
        assert package_sources.for_uv(pip, {}) == {"UV_FIND_LINKS": str(tmp_path)}

    def test_pip_is_told_what_uv_was_told_unless_it_was_told_itself(self):
        environment = {"UV_INDEX": "http://b", "UV_FIND_LINKS": "/one,/two", "PIP_EXTRA_INDEX_URL": "http://mine"}
        assert package_sources.for_pip(environment) == {"PIP_FIND_LINKS": "/one /two"}

    @pytest.mark.parametrize(("word", "allowed"), [("1", False), ("true", False), ("0", True), ("", True)])
    def test_no_index_means_no_index_to_uv_too(self, word, allowed):
        assert package_sources.allows_an_index({"no-index": word}, {}) is allowed
