"""The same facts in another order: whatever comes first, the end is the same.

One refund is made whose caller died before reading the answer. Everything that can be learned of
it, the late answer, all events with duplicates and a look-up, then arrives in a drawn order.
"""

from collections.abc import Callable
from random import Random

from operations.domain.audit import Actor, ActorKind
from operations.models import Attempt, Operation
from operations.services.finishing import finish_attempt
from tests.simulation import database
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import SimulationFailed, World

_AGENT = Actor(kind=ActorKind.API_KEY, id="1", name="Agent")
#: What may depend on the order: whether a refund that failed had been taken as a success before.
_DEPENDS = {"failed_after_success"}


def compare_orders(seed: int, orders: int = 2) -> None:
    """Raise SimulationFailed when two orders of the same facts end differently."""
    ends = {}
    for order in range(orders):
        world = World(seed, late_refunds=1.0)
        try:
            ends[order] = _end(world, Random(seed * 1_000 + order))
        except SimulationFailed as failure:
            failure.add_note(f"{world.told()}\n\nSeed {seed}, order {order}")
            raise
        if ends[order] != ends[0]:
            differ = SimulationFailed("any_order", f"{ends[0]} and {ends[order]}")
            differ.add_note(f"{world.told()}\n\nSeed {seed}, order {order}")
            raise differ


def _end(world: World, order: Random) -> list[object]:
    database.empty()
    scheduler = Scheduler(world)
    world.act = lambda: None
    with world.running():
        world.dies_at = "before the answer is read"
        scheduler.callers.ask()
        world.calm, world.dies_at = True, ""
        world.clock.advance(400_000.0)
        facts = _facts(world, scheduler)
        order.shuffle(facts)
        for fact in facts:
            fact()
        scheduler.drain()
    scheduler.verdict()
    return [
        (row.status, row.provider_object_id, row.provider_status, set(row.attention) - _DEPENDS)
        for row in Operation.objects.order_by("created_at", "id")
    ]


def _facts(world: World, scheduler: Scheduler) -> list[Callable[[], object]]:
    jobs = scheduler.jobs

    def arrive(letter_number: int) -> None:
        jobs.deliver(world.mail.letters[letter_number])
        jobs.handle_event()

    facts: list[Callable[[], object]] = []
    for number in range(len(world.mail.letters)):
        facts += [lambda number=number: arrive(number)] * 2  # type: ignore[misc]
    for attempt in Attempt.objects.all():
        answer = world.provider.last_answer
        if answer is not None:
            facts.append(
                lambda attempt=attempt, answer=answer: world.run(  # type: ignore[misc]
                    "late answer",
                    lambda: finish_attempt(
                        engine=world.engine,
                        operation_id=attempt.operation_id,
                        attempt_id=attempt.pk,
                        answer=answer,
                        actor=_AGENT,
                        call=None,
                    ),
                )
            )
        facts.append(lambda attempt=attempt: jobs.look_up(attempt.operation_id))  # type: ignore[misc]
    return facts
