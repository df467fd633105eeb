"""The one clock of a simulated world, and what falls due on it."""

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 30, 9, 0, tzinfo=UTC).timestamp()


class Clock:
    """True time in UTC seconds. `offset_s` is by how much the product's own clock is wrong."""

    def __init__(self) -> None:
        self.now = START
        self.offset_s = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._made = 0

    def as_seen(self) -> datetime:
        """The time that the product reads."""
        return moment(self.now + self.offset_s)

    def at(self, time: float, happen: Callable[[], None]) -> None:
        """Let something happen outside of the product at a true time."""
        self._made += 1
        heapq.heappush(self._due, (max(time, self.now), self._made, happen))

    def advance(self, seconds: float) -> None:
        """Let time pass; what falls due on the way happens at its own moment."""
        end = self.now + max(0.0, seconds)
        while self._due and self._due[0][0] <= end:
            time, _, happen = heapq.heappop(self._due)
            self.now = max(self.now, time)
            happen()
        self.now = max(self.now, end)

    def next_due(self) -> float | None:
        """When the next thing happens by itself; None when nothing is left."""
        return self._due[0][0] if self._due else None


def moment(seconds: float) -> datetime:
    """UTC seconds as the product writes times."""
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)
