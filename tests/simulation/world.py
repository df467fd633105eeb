"""One simulated world: its clock, its provider, its mail, and the product's processes in it.

A process is one run of a service: a caller's request, a job, a person's click. It can die at any
boundary. While it waits (for the provider, for a pause to pass, between two transactions) others
run; they end before it goes on, so that one connection serves them all and every run repeats.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch
from uuid import UUID

from operations.domain import identity
from operations.domain.statuses import Status
from operations.models import RateBucket
from operations.services.engine import Engine, default_engine
from tests.simulation import crashes
from tests.simulation.clock import START, Clock
from tests.simulation.crashes import Crash
from tests.simulation.fates import Fate, draw_fate
from tests.simulation.mail import SECRET, Mail
from tests.simulation.provider import SimulatedProvider, Surroundings
from tests.simulation.records import Made
from tests.simulation.weather import Weather, draw_weather

#: How many processes wait inside of each other at most.
_DEEPEST = 6
#: A crash is drawn among this many boundaries; a shorter process lives on.
_BOUNDARIES = 70
_BETWEEN_SEND_AND_SAVE = ("after the provider acted", "before the answer is read")
#: How often something happens between two steps of a process that do not wait for anything.
_IDLE = 0.08
#: How often a process that reads the clock was held up before: a suspended machine, a full disk.
_FROZEN = 0.1
LOOKUP_SCHEDULE_S = (20, 30_000)

Result = TypeVar("Result")


class SimulationFailed(AssertionError):
    """A promise was broken. `check` names it; the message tells what was seen."""

    def __init__(self, check: str, what: str) -> None:
        self.check = check
        super().__init__(f"{check}: {what}")


@dataclass
class Process:
    """One run of a service; it dies when its countdown is over or at a place that it reaches."""

    name: str
    boundaries_left: int | None = None
    dies_at: str = ""
    dead: bool = False


@dataclass(frozen=True)
class Died:
    """What a process leaves to the one who called it: nothing."""


class SimulatedEngine(Engine):
    """The product's engine, with look-ups that end sooner so that a world ends sooner."""

    def next_lookup_after(
        self, lookups_made: int, status: Status = Status.UNKNOWN
    ) -> timedelta | None:
        """The configured steps only."""
        if lookups_made < len(self.lookup_schedule_s):
            return super().next_lookup_after(lookups_made, status)
        return None


class World:
    """Everything is drawn from `seed`, but for the weather that is given.

    `act` is what others do when a process waits, `beat` the sweep that comes if it waits for long.
    """

    def __init__(self, seed: int, **weather: Any) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.weather: Weather = replace(draw_weather(self.rng), **weather)
        self.clock = Clock()
        self.mail = Mail()
        self.broker: list[UUID] = []
        self.act: Callable[[], None] = lambda: None
        self.beat: Callable[[], None] = lambda: None
        self.calm = False
        #: How many sends may still go wrong after everything else has become calm.
        self.troubles_left = self.rng.choice((0, 1, 3))
        self.dies_at = ""
        self.trace: list[tuple[float, int, tuple[object, ...]]] = []
        self.processes: list[Process] = []
        self.provider = SimulatedProvider(
            Surroundings(
                clock=self.clock,
                rng=self.rng,
                weather=self.weather,
                draw_fate=self._draw_fate,
                travel=self.travel,
                reached=self.reached,
                announce=self._announce,
                note=self.note,
            )
        )
        self.engine = self._engine()

    def note(self, *what: object) -> None:
        """One line of the trace."""
        self.trace.append((self.clock.now - START, len(self.processes), what))

    def told(self) -> str:
        """The trace as text: seconds since the start, indented by who waits for whom."""
        return "\n".join(
            f"{time:12.1f}  {'    ' * depth}{' '.join(map(str, what))}"
            for time, depth, what in self.trace
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        """While this is open, processes can die and ids come from the seed."""
        repeatable = SimpleNamespace(randbits=self.rng.getrandbits)
        with ExitStack() as stack:
            stack.enter_context(patch.object(identity, "secrets", repeatable))
            # The bucket counts by the database's own clock, which no world can set.
            stack.enter_context(patch.object(RateBucket, "take", lambda **_: 0.0))
            stack.enter_context(crashes.boundaries(reached=self.reached, idle=self._idle))
            yield

    def run(
        self,
        name: str,
        call: Callable[[], Result],
        *,
        expected: tuple[type[Exception], ...] = (),
        mortal: bool = True,
    ) -> Result | Exception | Died:
        """Run one process to its end, its refusal or its death."""
        process = Process(name)
        if mortal and not self.calm and self.rng.random() < self.weather.crashes:
            process.boundaries_left = self.rng.randint(1, _BOUNDARIES)
            process.dies_at = self.rng.choice(("", *_BETWEEN_SEND_AND_SAVE))
        self.note(name)
        self.processes.append(process)
        try:
            result: Result | Exception | Died = call()
        except Crash:
            result = Died()
        except expected as error:
            result = error
        except SimulationFailed:
            raise
        except Exception as error:
            self.processes.pop()
            self.note(name, "raised", repr(error))
            raise SimulationFailed("no_surprise", f"{name} raised {error!r}") from error
        self.processes.pop()
        if process.dead:
            self.note(name, "died")
            return Died()
        self.note(name, "->", result if isinstance(result, Exception) else type(result).__name__)
        return result

    # --- What processes meet --------------------------------------------------------------------

    def reached(self, where: str) -> None:
        """A boundary: the process on top may die here."""
        process = self.processes[-1] if self.processes else None
        if process is None or process.dead:
            return
        if process.boundaries_left is not None:
            process.boundaries_left -= 1
        if process.boundaries_left == 0 or where in (self.dies_at, process.dies_at):
            process.dead = True
            self.note("crash", where)
            raise Crash(where)

    def travel(self, seconds: float) -> None:
        """Let time pass; others may act meanwhile. No transaction may be open."""
        if seconds <= 0:
            return
        if self._others_come():
            share = self.rng.choice((0.1, 0.5, 0.9))
            self.clock.advance(seconds * share)
            self.others(self.act)
            seconds -= seconds * share
        outlives = seconds > self.engine.lease_s
        self.clock.advance(seconds)
        if outlives and self._others_come():
            self.others(self.beat)

    def _sleep(self, seconds: float) -> None:
        self.reached("before a pause")
        self.travel(seconds)
        self.reached("after a pause")

    def _read_clock(self) -> datetime:
        """The time as the product sees it; a process may have been frozen just before."""
        if self.rng.random() < _FROZEN and self._others_come():
            seconds = self.rng.choice((60.0, 400.0, 90_000.0))
            self.note("frozen for", seconds)
            self.clock.advance(seconds)
            self.others(self.beat)
        self._idle()
        return self.clock.as_seen()

    def _idle(self, share: float = _IDLE) -> None:
        waits = bool(self.processes) and not self.processes[-1].dead
        if waits and self.rng.random() < share and self._others_come():
            self.others(self.act)

    def others(self, act: Callable[[], None]) -> None:
        """Something else happens now. What it reads is no step of the process that waits."""
        self.processes.append(Process("others"))
        try:
            act()
        finally:
            self.processes.pop()

    def _others_come(self) -> bool:
        return (
            not self.calm
            and len(self.processes) < _DEEPEST
            and not crashes.in_transaction()
            and self.rng.random() < self.weather.others_in_between
        )

    # --- What is drawn --------------------------------------------------------------------------

    def _draw_fate(self, resend: bool) -> Fate:
        share = self.weather.send_trouble
        if self.calm:
            share *= self.troubles_left > 0
            self.troubles_left -= 1
        return draw_fate(self.rng, self.weather.troubles, share, resend=resend)

    def _announce(self, kind: str, made: Made, key: str) -> None:
        charge = self.provider.charges[made.refund.charge]
        kinds = [kind]
        if kind == "refund.created" and self.rng.random() < 0.4:
            kinds.append("charge.refunded")
        if kind == "refund.updated" and self.rng.random() < 0.3:
            kinds.append("charge.refund.updated")
        lost = kind == "refund.created" and self.rng.random() < self.weather.lost_events
        for one in kinds:
            self.mail.write(one, made, charge, key=key, now=self.clock.now, lost=lost)

    def _engine(self) -> Engine:
        product = default_engine()
        values = {name: getattr(product, name) for name in product.__dataclass_fields__}
        engine = SimulatedEngine(**values)
        return replace(
            engine,
            clock=self._read_clock,
            sleep=self._sleep,
            jitter=self.rng.random,
            budget=replace(product.budget, attempts_per_operation=3),
            lookup_schedule_s=LOOKUP_SCHEDULE_S,
            environment="simulated",
            livemode=False,
            second_person_above={"usd": 3_000},
            webhook_secrets=(SECRET,),
            open_provider=lambda account: self.provider,
        )
