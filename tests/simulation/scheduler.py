"""What happens next, drawn from the seed; and how a world comes to rest."""

from collections.abc import Callable

from django.db import connection

from operations.domain.identity import METADATA_OPERATION
from operations.domain.statuses import UNRESOLVED
from operations.models import Operation
from tests.simulation.callers import Callers
from tests.simulation.checks import judge
from tests.simulation.jobs import Jobs
from tests.simulation.people import People
from tests.simulation.world import SimulationFailed, World

_PAUSES_S = (1.0, 25.0, 25.0, 40.0, 40.0, 120.0, 3_600.0, 40_000.0, 86_500.0, 86_500.0)
#: A world that is not quiet after this many rounds is in a loop.
_ROUNDS = 60
#: When the first operation, and when each event, has something to wait for. While a send is in
#: flight nothing else is done with its operation.
_DUE = """
    SELECT
        (SELECT min(coalesce(lease_expires_at, CASE WHEN status = ANY(%s) THEN next_check_at END))
         FROM operations_operation),
        ARRAY(SELECT handle_after FROM operations_inboxitem WHERE stuck_at IS NULL)
"""


class Scheduler:
    """Lets one world run: first rough, then calm until nothing is left to do."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.jobs = Jobs(world)
        self.callers = Callers(world)
        self.people = People(world, self.jobs)
        self.quiet = True
        world.act, world.beat = self.step, self._beat
        for charge in ("ch_1", "ch_2"):
            world.provider.add_charge(charge, world.weather.captured)

    def run(self) -> None:
        """All steps of the world, then its drain."""
        with self.world.running():
            self.callers.ask()
            for _ in range(self.world.weather.steps):
                self.step()
            self.drain()

    def step(self) -> None:
        """The next thing that happens; while a process waits, rather news than anything else."""
        waits = bool(self.world.processes)
        choices: list[tuple[int, Callable[[], None]]] = [
            (7, self.callers.ask),
            (1, self.callers.ask_for_several),
            (12 if waits else 6, self._deliver),
            (2, self._handle),
            (7, self._beat),
            (2, self.jobs.work),
            (6, self._time_passes),
            (9, self.people.decide),
            (1, self.people.pause_or_resume),
            (0 if waits else 4, self._look_up),
            (self.world.weather.outside_refunds, self._outside_refund),
        ]
        weights = [weight for weight, _ in choices]
        self.world.rng.choices([act for _, act in choices], weights)[0]()

    def drain(self) -> None:
        """Calm from here on: every message arrives, every job runs, until nothing is left."""
        world = self.world
        world.calm = True
        world.note("calm")
        self.people.resume()
        # Where a person may have erred, what got lost is fetched: else nobody could know.
        fetched = world.rng.random() < 0.5 and not Operation.objects.filter(status="failed")
        for _ in range(_ROUNDS):
            self._deliver_all()
            while world.broker:
                self.jobs.work()
            # Rows hold microseconds; true time has more digits.
            now, times = world.clock.now - 1e-5, self._due()
            for time, act in times:
                if time <= now:
                    act()
            if world.broker or world.mail.undelivered() or any(time <= now for time, _ in times):
                continue
            happens = world.clock.next_due()
            later = [time for time, _ in times] + ([] if happens is None else [happens])
            if later:
                world.clock.advance(max(1.0, min(later) - now))
            elif not fetched:
                fetched = True
                self._fetch_lost_events()
            else:
                return
        self.quiet = False

    def verdict(self) -> None:
        """Judge the world; that it came to rest at all is asked last, as it tells the least."""
        judge(self.world)
        if not self.quiet:
            raise SimulationFailed("no_loop", f"not quiet after {_ROUNDS} rounds")

    def _deliver_all(self) -> None:
        letters = self.world.mail.undelivered()
        self.world.rng.shuffle(letters)
        for letter in letters:
            self.jobs.deliver(letter)

    def _due(self) -> list[tuple[float, Callable[[], object]]]:
        """The true times at which jobs have something to do, each with the job."""
        offset = self.world.clock.offset_s
        with connection.cursor() as cursor:
            cursor.execute(_DUE, [[status.value for status in UNRESOLVED]])
            (check_at, events_at) = cursor.fetchone()
        times: list[tuple[float, Callable[[], object]]] = [
            (at.timestamp() - offset, self.jobs.handle_event) for at in events_at
        ]
        return times + ([(check_at.timestamp() - offset, self.jobs.sweep)] if check_at else [])

    def _fetch_lost_events(self) -> None:
        """What never arrived is fetched from the provider's list of events."""
        for letter in self.world.mail.letters:
            letter.lost = False

    def _deliver(self) -> None:
        rng, letters = self.world.rng, self.world.mail.letters
        new = self.world.mail.undelivered()
        if new and rng.random() < 0.8:
            letters = new
        letter = rng.choice(letters) if letters else None
        if letter is not None and not letter.lost:
            self.jobs.deliver(letter)
            if rng.random() < 0.7:
                self.jobs.handle_event()

    def _handle(self) -> None:
        for _ in range(self.world.rng.randint(1, 3)):
            if not self.jobs.handle_event():
                return

    def _beat(self) -> None:
        """A sweep, and the workers that take its messages, at once or later."""
        self.jobs.sweep()
        for _ in range(len(self.world.broker)):
            if self.world.rng.random() < 0.8:
                self.jobs.work()

    def _time_passes(self) -> None:
        rng = self.world.rng
        pause = rng.choice(_PAUSES_S)
        self.world.note("time passes", pause)
        self.world.clock.advance(pause)
        if self.world.weather.clock_wrong and rng.random() < 0.5:
            self.world.clock.offset_s = rng.choice((-240.0, 0.0, 240.0))
            self.world.note("clock wrong by", self.world.clock.offset_s)
        if rng.random() < 0.7:
            self._beat()

    def _look_up(self) -> None:
        rows = Operation.objects.order_by("created_at", "id").values_list("status", "pk")
        ids = [pk for status, pk in rows if status in UNRESOLVED or self.world.rng.random() < 0.3]
        if ids:
            self.jobs.look_up(self.world.rng.choice(ids))

    def _outside_refund(self) -> None:
        """Somebody refunds in the dashboard, or another installation does."""
        rng = self.world.rng
        metadata = rng.choice(
            (
                {},
                {},
                {"order": "A"},
                {METADATA_OPERATION: "018f0000-0000-7000-8000-000000000000"},
            )
        )
        charge = self.world.provider.charges["ch_1"]
        self.world.provider.refund(charge, rng.choice((1_000, 2_500, 2_500, 4_000)), metadata)
