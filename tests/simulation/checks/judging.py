"""How a world at rest is judged: each promise is a function that yields a sentence for a fault."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.simulation.histories import History, read_histories
from tests.simulation.records import Send
from tests.simulation.world import SimulationFailed, World


@dataclass
class Rest:
    """A world that has come to rest."""

    world: World

    @cached_property
    def histories(self) -> list[History]:
        """All operations."""
        return read_histories()

    @cached_property
    def sends_by_operation(self) -> dict[str, list[Send]]:
        """What arrived at the provider, by the operation that it names."""
        found = defaultdict(list)
        for send in self.world.provider.sends:
            found[send.operation].append(send)
        return found


Check = Callable[[Rest], Iterator[str]]
CHECKS: list[Check] = []
_ORDER = ("sending", "outcomes", "records")


def check(function: Check) -> Check:
    """Register a promise."""
    CHECKS.append(function)
    return function


def judge(world: World) -> None:
    """Raise SimulationFailed for the first promise that was broken."""
    rest = Rest(world)
    for promise in sorted(CHECKS, key=_weight):
        for wrong in promise(rest):
            raise SimulationFailed(promise.__name__, wrong)


def _weight(promise: Check) -> int:
    """What may leave us comes first: a fault is named by the worst that it does."""
    return _ORDER.index(promise.__module__.rpartition(".")[2])
