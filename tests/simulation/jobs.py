"""The product's jobs as workers run them: twice, at once, late, or never when a message is lost."""

from uuid import UUID

from operations.services.actors import LOOKUP_JOB
from operations.services.draining import handle_next_event
from operations.services.ingesting import EventRefused, receive_event
from operations.services.looking_up import look_up
from operations.services.sweeping import check, claim_due_checks, give_up_lost_sends
from tests.simulation.mail import Letter, signature
from tests.simulation.world import World


class Jobs:
    """What `operations.jobs` does, on the world's broker."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.engine = world.engine

    def sweep(self) -> None:
        """One beat: lost sends, then the due checks, each handed to the broker."""
        self.world.run("give up lost sends", lambda: give_up_lost_sends(engine=self.engine))
        claimed = self.world.run("claim checks", lambda: claim_due_checks(engine=self.engine))
        if isinstance(claimed, list):
            self.world.broker.extend(claimed)

    def work(self) -> None:
        """One message from the broker, in any order; at times it is lost or stays for another."""
        rng, broker = self.world.rng, self.world.broker
        if not broker:
            return
        operation_id = broker.pop(rng.randrange(len(broker)))
        if not self.world.calm and rng.random() < self.world.weather.lost_messages:
            self.world.note("message lost", operation_id)
            return
        if not self.world.calm and rng.random() < 0.2:
            broker.append(operation_id)
        self.check(operation_id)

    def check(self, operation_id: UUID) -> None:
        """One due check."""
        self.world.run(
            f"check {operation_id}",
            lambda: check(engine=self.engine, operation_id=operation_id),
        )

    def look_up(self, operation_id: UUID) -> None:
        """A look-up that somebody asked for."""
        self.world.run(
            f"look up {operation_id}",
            lambda: look_up(engine=self.engine, operation_id=operation_id, actor=LOOKUP_JOB),
        )

    def deliver(self, letter: Letter) -> bool:
        """One delivery of one event; it counts as delivered when we answered."""
        signed = signature(letter.raw, self.world.clock.now)
        result = self.world.run(
            f"deliver {letter.event_id} {letter.made.refund.id}",
            lambda: receive_event(
                engine=self.engine, raw=letter.raw, signature=signed, endpoint_account=""
            ),
            # Whoever was held up for too long refuses a signature that was good when it came.
            expected=(EventRefused,),
        )
        if not isinstance(result, bool):
            return False
        letter.deliveries += 1
        return True

    def handle_event(self) -> bool:
        """The next waiting event. False when none waits."""
        handled = self.world.run("handle event", lambda: handle_next_event(engine=self.engine))
        if isinstance(handled, UUID):
            self.world.broker.append(handled)
        return handled is not None
