"""Whom every test may ask for: Alice (operator), Bob (viewer), Charlie (outside), and two more.

Rows are made by the plain functions of `tests.factories`. It is imported late: the tests of the core need no Django.
"""

import pytest

from tests.collecting import pytest_collection_modifyitems, pytest_terminal_summary

__all__ = ["pytest_collection_modifyitems", "pytest_terminal_summary"]


@pytest.fixture
def alice(db):
    return _person("alice", "operator")


@pytest.fixture
def bob(db):
    return _person("bob", "viewer")


@pytest.fixture
def charlie(db):
    return _person("charlie", None)


@pytest.fixture
def paula(db):
    return _person("paula", "planner")


@pytest.fixture
def adam(db):
    return _person("adam", "admin")


def _person(name, group):
    from tests.factories import a_person

    return a_person(name, group=group)
