"""One seed from its beginning to its verdict."""

from tests.simulation import database
from tests.simulation.checks import judge
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import SimulationFailed, World


def run_seed(seed: int) -> World:
    """Run the world of a seed and judge it.

    Raises SimulationFailed with the seed, its trace and how to run it again.
    """
    database.empty()
    world = World(seed)
    try:
        Scheduler(world).run()
        judge(world)
    except SimulationFailed as failure:
        failure.add_note(
            f"{world.told()}\n\nSeed {seed}, {world.weather}\n"
            f"Again: .venv/bin/python -m tests.simulation --seed {seed}"
        )
        raise
    return world
