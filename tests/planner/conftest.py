"""What the tests of pages and API start from."""

import pytest
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.db import close_old_connections


@pytest.fixture(autouse=True)
def _no_requests_counted_yet():
    cache.clear()


@pytest.fixture
def wsgi(db):
    """The application as a web server calls it, inside the test's transaction: Django would drop the connection."""
    from planner.wsgi import application

    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield application
    for signal in signals:
        signal.connect(close_old_connections)
