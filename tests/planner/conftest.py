"""What the tests of pages and API start from."""

import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def _no_requests_counted_yet():
    cache.clear()
