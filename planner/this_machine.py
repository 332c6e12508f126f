"""What `up` needs of the machine before it starts anything; what is missing is said in one line."""

import fcntl
import os
import socket
import stat
import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from redis import RedisError

from planner import broker, health

SECONDS_FOR_A_PREDECESSOR = 15


def hold(home: Path) -> int:
    """The lock of the data folder, as an open file: one `up` at a time may work there."""
    lock = os.open(home / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + SECONDS_FOR_A_PREDECESSOR
    while not _locks(lock):
        # A holder that is gone has left children that are ending: they keep the lock for a few seconds more.
        holder = int(os.pread(lock, 20, 0) or 0)
        if time.monotonic() > deadline or _lives(holder):
            raise CommandError(
                f"vLLM Planner already runs from {home} (process {holder}). "
                "Stop it with Ctrl-C, or name another folder: PLANNER_HOME=/path/to/data"
            )
        time.sleep(0.2)
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def _locks(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process > 0


def require_port(host: str, port: int) -> None:
    """Raise CommandError where the web server could not listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise CommandError(
                f"Cannot listen on {host} port {port}: {why}. Choose another: python3 manage.py up --port {port + 1}"
            ) from error


def require_database() -> None:
    """Raise CommandError where the database does not answer."""
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        place = "{HOST}:{PORT}/{NAME}".format(**connection.settings_dict).removeprefix(":/")
        raise CommandError(
            f"Cannot reach the database of DATABASE_URL ({place}): {_first_line(error)} "
            "Start it, or correct DATABASE_URL."
        ) from error


def require_broker() -> None:
    """Raise CommandError where the broker does not answer."""
    try:
        health.check_broker()
    except (RedisError, ValueError) as error:
        raise CommandError(
            f"Cannot reach the broker of REDIS_URL ({without_password(settings.REDIS_URL)}): {_first_line(error)} "
            "Start it, correct REDIS_URL, or unset it to use the embedded one."
        ) from error


def without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") + "."


def socket_folder() -> Path:
    """The folder of the embedded broker's socket, which must be this user's alone where it is not the data folder."""
    folder = broker.socket_path(settings.PLANNER_HOME).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if folder != settings.PLANNER_HOME and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077):
        raise CommandError(f"{folder} belongs to somebody else. Set XDG_RUNTIME_DIR to a folder of your own.")
    return folder
