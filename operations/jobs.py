"""Celery tasks: load ids, make one service call. Every task is harmless when it runs twice."""

import time
from uuid import UUID

import structlog
from celery import shared_task

from operations.services.actors import LOOKUP_JOB
from operations.services.draining import drain
from operations.services.engine import default_engine
from operations.services.identifying import forget_old_tokens
from operations.services.looking_up import look_up
from operations.services.notifying import deliver_due, notices_wait
from operations.services.subscribing import tidy_notices
from operations.services.sweeping import (
    check,
    claim_due_checks,
    events_wait,
    give_up_lost_sends,
)

log = structlog.get_logger(__name__)

#: How long one run of the drain goes on before it makes room for other tasks, in seconds.
_DRAIN_S = 20


def wake_inbox() -> None:
    """Tell a worker that events wait. A broker that is down costs nothing: the sweep finds them."""
    try:
        handle_events.delay()
    except Exception as error:
        log.warning("broker_unreachable", error=str(error))


@shared_task(name="operations.jobs.handle_events")
def handle_events() -> None:
    """Handle the events that wait, in batches, for as long as one run lasts."""
    engine = default_engine()
    ends_at = time.monotonic() + _DRAIN_S
    while time.monotonic() < ends_at:
        drained = drain(engine=engine)
        if drained is None:
            return
        for operation_id in drained.look_ups:
            look_up_operation.delay(str(operation_id))
    handle_events.delay()


@shared_task(name="operations.jobs.check_operation")
def check_operation(operation_id: str) -> None:
    """Look up one operation, and send it again if it is open and may be sent."""
    check(engine=default_engine(), operation_id=UUID(operation_id))


@shared_task(name="operations.jobs.look_up_operation")
def look_up_operation(operation_id: str) -> None:
    """Look up one operation whatever its status."""
    look_up(engine=default_engine(), operation_id=UUID(operation_id), actor=LOOKUP_JOB)


@shared_task(name="operations.jobs.deliver_notices")
def deliver_notices() -> None:
    """Deliver the notices that are due, for as long as one run lasts."""
    engine = default_engine()
    if deliver_due(engine=engine) and notices_wait(engine=engine):
        deliver_notices.delay()


@shared_task(name="operations.jobs.sweep")
def sweep() -> None:
    """Find what a crash or a lost message left behind."""
    engine = default_engine()
    give_up_lost_sends(engine=engine)
    for operation_id in claim_due_checks(engine=engine):
        check_operation.delay(str(operation_id))
    if events_wait(engine=engine):
        handle_events.delay()


@shared_task(name="operations.jobs.tidy")
def tidy() -> None:
    """Remove what was kept for a time and has served it."""
    engine = default_engine()
    forget_old_tokens(engine=engine)
    tidy_notices(engine=engine)
