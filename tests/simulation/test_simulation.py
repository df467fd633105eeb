"""Two thousand worlds, each made from its seed, keep every promise."""

import pytest

from tests.simulation.seeds import run_seed

SEEDS = 2_000
_EACH = 50


@pytest.mark.usefixtures("simulation_database")
@pytest.mark.parametrize("first", range(0, SEEDS, _EACH))
def test_every_world_keeps_every_promise(first: int) -> None:
    for seed in range(first, first + _EACH):
        run_seed(seed)
