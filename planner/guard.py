"""Run one command until it ends or until the process that asked for it is gone, whichever comes first.

`python guard.py FD SECONDS COMMAND...`: FD is the reading end of a pipe whose writing end only the asking process
holds. When that end closes (the asker stopped, or was killed and could not), the command and all it started get
SIGTERM, and SIGKILL after SECONDS. It works wherever there are pipes; Linux also ends the command with its guard.

Standard library only, and little of it: one such process stands beside each part of the service.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def end_with_parent() -> Callable[[], None] | None:
    """What the new process does first: ask Linux for SIGKILL when its guard dies."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def end_group_when_pipe_closes(pipe: int, seconds: float) -> None:
    os.read(pipe, 1)
    os.killpg(0, signal.SIGTERM)
    time.sleep(seconds)
    os.killpg(0, signal.SIGKILL)


def main(pipe: int, seconds: float, command: list[str]) -> int:
    """The command's exit code, or 128 and the number of the signal that ended it, as a shell says it."""
    child = subprocess.Popen(command, preexec_fn=end_with_parent())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the guard outlives what it guards
    threading.Thread(target=end_group_when_pipe_closes, args=(pipe, seconds), daemon=True).start()
    code = child.wait()
    os.killpg(0, signal.SIGTERM)  # whatever the command left behind
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
