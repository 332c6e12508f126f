"""`manage.py up`, started as a person starts it."""

import http.cookiejar
import json
import os
import signal
import socket
import stat
import time
import urllib.error
import urllib.request

import pytest
from celery import Celery

from planner import broker
from tests.house.running import free_port, manage, service, still_alive, wait_for


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("up")
    with service(folder / "home", port=free_port(), output=folder / "output") as started:
        yield started


def get(address, cookies=None):
    jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar() if cookies is None else cookies)
    try:
        return urllib.request.build_opener(urllib.request.ProxyHandler({}), jar).open(address, timeout=20)
    except urllib.error.HTTPError as error:
        return error


def test_the_link_it_prints_signs_in_once(running):
    first, second = http.cookiejar.CookieJar(), http.cookiejar.CookieJar()
    assert get(running.link, first).url == f"{running.address}/"
    assert "/accounts/login/" in get(running.link, second).url
    assert [cookie.name for cookie in first if cookie.name == "planner_session"]
    assert not [cookie.name for cookie in second if cookie.name == "planner_session"]


def test_strangers_are_asked_to_sign_in(running):
    assert "/accounts/login/" in get(f"{running.address}/").url


def test_it_is_alive_and_ready(running):
    assert json.load(get(f"{running.address}/healthz")) == {"status": "ok"}
    assert json.load(get(f"{running.address}/readyz")) == {"status": "ok", "database": "ok", "broker": "ok"}


def test_its_broker_and_its_data_are_open_to_its_user_alone(running):
    assert stat.S_IMODE((running.home / "broker.sock").stat().st_mode) == 0o700
    readable_by_others = [path for path in running.home.rglob("*") if path.stat().st_mode & 0o077]
    assert readable_by_others == []


def test_the_worker_of_this_machine_answers(running):
    control = Celery(broker=broker.celery_url(broker.socket_url(running.home))).control
    answers = []
    assert wait_for(lambda: answers.extend(control.ping(timeout=1)) or answers, seconds=60)
    assert {name.partition("@")[0] for answer in answers for name in answer} == {"local"}


def test_a_second_one_in_the_same_folder_is_told_of_the_first(running):
    second = manage("up", "--port", str(free_port()), PLANNER_HOME=str(running.home))
    assert second.returncode == 1
    assert f"already runs from {running.home} (process {running.process.pid})" in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1


def test_a_taken_port_is_told_in_a_line_with_the_way_out(running, tmp_path):
    other = manage("up", "--port", str(running.port), PLANNER_HOME=str(tmp_path))
    assert other.returncode == 1
    assert f"Cannot listen on 127.0.0.1 port {running.port}: Address already in use." in other.stderr
    assert f"manage.py up --port {running.port + 1}" in other.stderr
    assert len(other.stderr.strip().splitlines()) == 1


def test_killed_it_leaves_no_orphan_then_starts_again_and_ctrl_c_stops_all(tmp_path):
    port = free_port()
    with service(tmp_path / "home", port=port, output=tmp_path / "first") as first:
        parts = first.descendants()
        assert len(parts) >= 8  # four guards, and broker, web, worker, beat behind them
        first.process.kill()
        first.process.wait()
        with service(tmp_path / "home", port=port, output=tmp_path / "second") as second:
            assert still_alive(parts) == []
            parts = second.descendants()
            started = time.monotonic()
            second.process.send_signal(signal.SIGINT)
            assert second.process.wait(timeout=30) == 0
            assert time.monotonic() - started < 20
            assert still_alive(parts) == []


def test_when_a_part_ends_all_end_and_its_code_is_ours(tmp_path):
    with service(tmp_path / "home", port=free_port(), output=tmp_path / "output") as started:
        assert wait_for(lambda: process_of("beat", started), seconds=10)
        parts, beat = started.descendants(), process_of("beat", started)
        os.kill(beat.pid, signal.SIGKILL)
        assert started.process.wait(timeout=30) == 128 + signal.SIGKILL
        assert wait_for(lambda: not still_alive(parts), seconds=5)
    assert "beat ended with code 137" in started.output.read_text()


def process_of(word, started):
    """The process whose command has this word, and not the guard beside it."""
    commands = ((part, part.cmdline()) for part in started.descendants())
    return next((part for part, words in commands if word in words and "-I" not in words), None)


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (
            {"DATABASE_URL": "postgres://planner:hidden@127.0.0.1:1/plans"},
            "Cannot reach the database of DATABASE_URL (127.0.0.1:1/plans)",
        ),
        ({"DATABASE_URL": "sqlite:////nowhere/plans.sqlite3"}, "Cannot reach the database of DATABASE_URL"),
        ({"DATABASE_URL": "oracular://127.0.0.1/plans"}, "DATABASE_URL must start with postgres:// or sqlite://"),
        ({"DATABASE_URL": "plans"}, "DATABASE_URL must start with postgres:// or sqlite://"),
        (
            {"REDIS_URL": "redis://:hidden@127.0.0.1:1/0"},
            "Cannot reach the broker of REDIS_URL (redis://127.0.0.1:1/0)",
        ),
        ({"REDIS_URL": "carrier-pigeon://loft"}, "Cannot reach the broker of REDIS_URL"),
    ],
)
def test_what_cannot_be_reached_is_named_in_a_line_without_its_password(told, line, tmp_path):
    refused = manage("up", "--port", str(free_port()), PLANNER_HOME=str(tmp_path), **told)
    assert refused.returncode == 1
    assert line in refused.stderr
    assert "hidden" not in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


def test_a_data_folder_that_cannot_be_written_is_told_in_a_line():
    refused = manage("up", PLANNER_HOME="/dev/null/planner")
    assert refused.returncode == 1
    assert refused.stderr.startswith("PLANNER_HOME cannot be written: /dev/null/planner (Not a directory).")
    assert len(refused.stderr.strip().splitlines()) == 1


def test_an_address_of_another_machine_cannot_be_listened_on(tmp_path):
    refused = manage("up", "--host", "192.0.2.1", "--port", str(free_port()), PLANNER_HOME=str(tmp_path))
    assert refused.returncode == 1
    assert "Cannot listen on 192.0.2.1" in refused.stderr


def test_a_deep_data_folder_gets_its_socket_elsewhere(tmp_path):
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    path = broker.socket_path(deep)
    assert path.parent != deep
    with socket.socket(socket.AF_UNIX) as listener:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        listener.bind(str(path))
    path.unlink()
    path.parent.rmdir()
