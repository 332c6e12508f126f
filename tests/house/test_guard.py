"""The guard beside each part: nothing that it started outlives who asked for it."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from planner.processes import Service
from tests.house.running import still_alive, wait_for

# A part that will not go when asked, with a child that will not either.
STUBBORN = "import signal, subprocess, sys, time; signal.signal(15, signal.SIG_IGN); {more}; time.sleep(600)"
WITH_A_CHILD = STUBBORN.format(more=f"subprocess.Popen([sys.executable, '-c', {STUBBORN.format(more='pass')!r}])")
ASKER = (
    "import os, sys, time; from pathlib import Path; from planner.processes import Service; "
    "service = Service(logs=Path(sys.argv[1]), environment=os.environ, lock=os.open(sys.argv[1], os.O_RDONLY)); "
    "service.start('stubborn', [sys.executable, '-c', sys.argv[2]]); time.sleep(600)"
)


@pytest.fixture
def service(tmp_path):
    lock = os.open(tmp_path, os.O_RDONLY)
    service = Service(logs=tmp_path, environment=os.environ, lock=lock)
    yield service
    service.stop()
    os.close(lock)


def test_a_part_that_ends_is_seen_with_its_code_and_its_last_lines(service):
    service.start("quick", ["sh", "-c", "echo the reason; exit 7"])
    part = service.wait_for_an_end()
    assert (part.name, part.guard.returncode, part.last_lines()) == ("quick", 7, "the reason")


def test_a_part_ended_by_a_signal_has_the_code_a_shell_gives(service):
    service.start("suicide", ["sh", "-c", "kill -9 $$"])
    assert service.wait_for_an_end().guard.returncode == 128 + signal.SIGKILL


def test_stopping_asks_politely_first(service, tmp_path):
    service.start("polite", ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done"])
    assert wait_for(lambda: "up" in (tmp_path / "polite.log").read_text(), seconds=5)
    service.stop()
    assert "bye" in (tmp_path / "polite.log").read_text()
    service.parts.clear()


def test_the_first_part_is_stopped_last(service, tmp_path):
    order = tmp_path / "order"
    for name in ("broker", "web"):
        service.start(
            name, ["sh", "-c", f"trap 'echo {name} >> {order}; exit' TERM; echo up; while :; do sleep 0.1; done"]
        )
    assert wait_for(lambda: all("up" in (tmp_path / f"{n}.log").read_text() for n in ("broker", "web")), seconds=5)
    service.stop()
    assert order.read_text().split() == ["web", "broker"]
    service.parts.clear()


def test_what_will_not_go_is_killed_with_its_children_when_the_asker_is_killed(tmp_path):
    asker = subprocess.Popen([sys.executable, "-c", ASKER, str(tmp_path), WITH_A_CHILD])
    assert wait_for(lambda: len(psutil.Process(asker.pid).children(recursive=True)) == 3, seconds=20)
    started = psutil.Process(asker.pid).children(recursive=True)
    time.sleep(0.5)  # until the last one ignores SIGTERM
    asker.kill()
    asker.wait()
    assert wait_for(lambda: not still_alive(started), seconds=10)


if sys.platform.startswith("linux"):  # no other kernel offers it

    def test_on_linux_a_killed_guard_takes_its_command_along(service):
        part = service.start("sleeper", ["sleep", "600"])
        guard = psutil.Process(part.guard.pid)
        assert wait_for(guard.children, seconds=5)
        (sleeper,) = guard.children()
        guard.kill()
        assert wait_for(lambda: not still_alive([sleeper]), seconds=5)
