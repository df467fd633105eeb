"""The simulation can fail: each planted fault is caught, with the database's own guards off."""

from collections.abc import Callable, Iterator

import pytest

from tests.simulation import database
from tests.simulation.faults import PLANTED, Fault
from tests.simulation.seeds import first_red

#: Within so many seeds each fault has to be caught.
SEEDS = 500


@pytest.fixture
def unguarded(simulation_database: None) -> Iterator[None]:
    """The product's tables without their triggers, so that the code alone has to be right."""
    with database.guards_off():
        yield


@pytest.mark.usefixtures("unguarded")
@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_planted_fault_is_caught(
    fault: Fault, record_property: Callable[[str, object], None]
) -> None:
    with fault.plant():
        caught = first_red(SEEDS)
    assert caught is not None, f"{SEEDS} seeds stayed green although: {fault.says}"
    seed, check = caught
    record_property("caught", f"{check} at seed {seed}")
