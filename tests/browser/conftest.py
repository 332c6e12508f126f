"""One Chromium, one live server, and a page that reports what must never happen: violations, errors, foreign hosts."""

import os
import shutil
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright's loop runs in the thread that prepares the database
QUIET = "--disable-gpu --disable-background-networking --disable-component-update --disable-sync --no-first-run"


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    """The system's Chromium where there is one, else Playwright's own; it talks to nobody but the server."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    ours = {"args": ["--no-sandbox", *QUIET.split(), "--disable-quic"]}
    return {**browser_type_launch_args, **ours, **({"executable_path": found} if found else {})}


@pytest.fixture
def site(live_server):
    """The service with its catalog; every test starts from an empty database."""
    call_command("catalog_load", verbosity=0)
    return live_server.url


@pytest.fixture
def open_page(site, new_context):
    """Open pages as a person: `open_page("/plans/new", alice)`; what a page may never do fails the test."""
    watched = []

    def opened(path, person=None, **options):
        context = new_context(base_url=site, **options)
        if person:
            context.add_cookies([_session_of(person, site)])
        page = context.new_page()
        faults = []
        watched.append((page, faults))
        page.on("console", lambda message: faults.append(message.text) if _is_fault(message) else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.append(request.url) if not request.url.startswith(site) else None)
        page.goto(path)
        return page

    yield opened
    for page, faults in watched:
        assert faults == [], f"{page.url} broke a rule of the house"


def _is_fault(message):
    """Violations and script errors; that an answer was a 4xx or none at all is a page's own matter to show."""
    expected = ("Failed to load resource", "Failed to fetch")
    return message.type == "error" and not any(words in message.text for words in expected)


def _session_of(person, site):
    client = Client()
    client.force_login(person)
    (name, cookie), *_ = client.cookies.items()
    return {"name": name, "value": cookie.value, "url": site}
