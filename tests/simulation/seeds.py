"""One seed from its beginning to its verdict."""

from collections.abc import Iterable

from tests.simulation import database
from tests.simulation.permutations import compare_orders
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import SimulationFailed, World

#: Every so many seeds the same facts are also told in two orders.
ORDERS_EACH = 20


def run_seed(seed: int) -> World:
    """Run the world of a seed and judge it.

    Raises SimulationFailed with the seed, its trace and how to run it again.
    """
    database.empty()
    world = World(seed)
    try:
        scheduler = Scheduler(world)
        scheduler.run()
        scheduler.verdict()
    except SimulationFailed as failure:
        failure.add_note(
            f"{world.told()}\n\nSeed {seed}\n"
            f"Again: .venv/bin/python -m tests.simulation --seed {seed}"
        )
        raise
    if seed % ORDERS_EACH == 0:
        compare_orders(seed)
    return world


def first_red(seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first seed that turns red and the promise that it found broken; None for none."""
    for seed in seeds:
        try:
            run_seed(seed)
        except SimulationFailed as failure:
            return seed, failure.check
    return None
