"""Where the task broker is: the one of `REDIS_URL`, or the embedded Valkey's socket in PLANNER_HOME."""

import hashlib
import os
import tempfile
from pathlib import Path

LONGEST_SOCKET_PATH = 100  # the kernel allows 107 bytes on Linux and 103 on macOS


def socket_path(home: Path) -> Path:
    """The embedded broker's socket: in `home`, or in the runtime folder where `home` lies too deep."""
    path = home / "broker.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    runtime = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(runtime) / f"vllm-planner-{os.getuid()}-{digest}" / "broker.sock"


def socket_url(home: Path) -> str:
    """The embedded broker's address as redis-py reads it."""
    return f"unix://{socket_path(home)}?db=0"


def celery_url(redis_url: str) -> str:
    """The same broker's address as Celery spells it."""
    if not redis_url.startswith("unix://"):
        return redis_url
    path = redis_url.removeprefix("unix://").partition("?")[0]
    return f"redis+socket://{path}?virtual_host=0"
