"""A database for simulated worlds: with real commits, empty before and after."""

from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from tests.simulation import database


@pytest.fixture
def simulation_database(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """The connection is quick, and nothing is left of the worlds afterwards."""
    with django_db_blocker.unblock():
        database.prepare()
        database.empty()
        try:
            yield
        finally:
            database.empty()
            database.tidy()
