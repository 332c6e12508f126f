"""Start the service as a person would, and look at what it leaves running."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

PROJECT = Path(__file__).resolve().parents[2]
SET_BY_WHOEVER_RUNS_THE_TESTS = (
    "DATABASE_URL",
    "REDIS_URL",
    "PLANNER_URL",
    "PLANNER_HOME",
    "DJANGO_SETTINGS_MODULE",
    "SECRET_KEY",
)


def clean_environment(**told: str) -> dict[str, str]:
    """The environment of a person who set nothing but what is told here."""
    kept = {name: value for name, value in os.environ.items() if name not in SET_BY_WHOEVER_RUNS_THE_TESTS}
    return kept | told


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def manage(*arguments: str, **told: str) -> subprocess.CompletedProcess[str]:
    """One command of `manage.py`, run to its end."""
    return subprocess.run(
        [sys.executable, str(PROJECT / "manage.py"), *arguments],
        env=clean_environment(**told),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def wait_for(fact: Callable[[], bool], *, seconds: float) -> bool:
    """Whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A service that was started and said so."""

    process: subprocess.Popen[bytes]
    home: Path
    port: int
    output: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def link(self) -> str:
        found = re.search(r"http\S+/accounts/link/\S+", self.output.read_text())
        assert found, self.output.read_text()
        return found[0]

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


@contextmanager
def service(home: Path, *, port: int, output: Path) -> Iterator[Running]:
    """`manage.py up`, from the moment it prints its address; whatever happens, it is ended afterwards."""
    command = [sys.executable, str(PROJECT / "manage.py"), "up", "--port", str(port)]
    with output.open("wb") as sink:
        told = clean_environment(PLANNER_HOME=str(home))
        process = subprocess.Popen(command, env=told, stdout=sink, stderr=subprocess.STDOUT)
    try:
        assert wait_for(lambda: "Sign in as" in output.read_text() or process.poll() is not None, seconds=90)
        assert process.poll() is None, output.read_text()
        yield Running(process=process, home=home, port=port, output=output)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def still_alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
