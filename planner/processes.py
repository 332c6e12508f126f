"""The service's processes on one machine: started, watched and stopped together; none outlives who started it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

GUARD = Path(__file__).with_name("guard.py")
SECONDS_TO_STOP = 8.0
LARGEST_LOG_BYTES = 10 * 1024 * 1024


class Stopped(Exception):
    """Somebody asked for the end: Ctrl-C, or SIGTERM from whoever runs the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One running process: its guard, and the pipe whose closing ends it."""

    name: str
    guard: subprocess.Popen[bytes]
    pipe: int
    log: Path

    def last_lines(self, count: int = 5) -> str:
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])


@dataclass(slots=True, kw_only=True)
class Service:
    """All parts of the service, in the order they were started."""

    logs: Path
    environment: Mapping[str, str]
    lock: int  # held by every guard too: a successor waits until the last of them is gone
    parts: list[Part] = field(default_factory=list)

    def start(self, name: str, command: Sequence[str]) -> Part:
        log = self.fresh_log(name)
        reading, writing = os.pipe()
        guarded = [sys.executable, "-I", "-S", str(GUARD), str(reading), str(SECONDS_TO_STOP - 2), *command]
        with log.open("ab") as output:
            guard = subprocess.Popen(
                guarded,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(self.environment),
                pass_fds=[reading, self.lock],
                start_new_session=True,  # Ctrl-C reaches us alone, and we stop them in order
            )
        os.close(reading)
        part = Part(name=name, guard=guard, pipe=writing, log=log)
        self.parts.append(part)
        return part

    def fresh_log(self, name: str) -> Path:
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{name}.log"
        if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        return log

    def first_ended(self) -> Part | None:
        return next((part for part in self.parts if part.guard.poll() is not None), None)

    def wait_for_an_end(self) -> Part:
        """The first part that ends by itself."""
        while (part := self.first_ended()) is None:
            time.sleep(0.3)
        return part

    def stop(self) -> None:
        """End the parts, the first started (the broker, which the others still talk to) last."""
        end_all(self.parts[1:])
        end_all(self.parts[:1])


def end_all(parts: Sequence[Part]) -> None:
    for part in parts:
        os.close(part.pipe)
    deadline = time.monotonic() + SECONDS_TO_STOP
    for part in parts:
        try:
            part.guard.wait(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(part.guard.pid, signal.SIGKILL)
            part.guard.wait()


def stop_on_signals() -> None:
    """Raise `Stopped` at Ctrl-C and SIGTERM, also where a shell that started us with `&` made SIGINT ignored."""

    def stop(_number: int, _frame: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C does not interrupt the stopping
        raise Stopped

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
