"""Which tests run here and in which order.

A test that needs a program this machine lacks is left out with a word about it, but never where CI runs.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house.servers import postgres_program

PLAYWRIGHTS_OWN = Path.home() / ".cache" / "ms-playwright"
NEEDED: dict[str, tuple[str, Callable[[], bool]]] = {
    "browser": ("Chromium", lambda: bool(shutil.which("chromium")) or PLAYWRIGHTS_OWN.is_dir()),
    "postgres": ("PostgreSQL", lambda: bool(postgres_program("initdb"))),
}
left_out: dict[str, int] = {}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Tests with a server empty the database after them, the groups of the migrations too: they come after all others.
    items.sort(key=needs_a_server)
    if not os.environ.get("CI"):
        leave_out_what_cannot_run(config, items)


def needs_a_server(item: pytest.Item) -> bool:
    return not {"live_server", "transactional_db"}.isdisjoint(getattr(item, "fixturenames", ()))


def leave_out_what_cannot_run(config: pytest.Config, items: list[pytest.Item]) -> None:
    for marker, (program, is_there) in NEEDED.items():
        needing = [item for item in items if item.get_closest_marker(marker)]
        if needing and not is_there():
            left_out[program] = len(needing)
            config.hook.pytest_deselected(items=needing)
            items[:] = [item for item in items if item not in needing]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for program, count in left_out.items():
        terminalreporter.write_line(f"{count} tests were left out: they need {program}, which this machine lacks.")
