"""A database for simulated worlds: with real commits, and empty before and after."""

from collections.abc import Iterator

import pytest

from tests.simulation import database


@pytest.fixture
def simulation_database(transactional_db: None) -> Iterator[None]:
    """The connection is quick, and dead rows do not slow the next worlds down."""
    database.prepare()
    yield
    database.tidy()
