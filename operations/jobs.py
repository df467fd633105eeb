"""Celery tasks: load ids, make one service call. Every task is harmless when it runs twice."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import structlog
from celery import shared_task
from django.conf import settings

from operations.models import WORKER, Heartbeat
from operations.queries.money_counted import count_money
from operations.services import backfilling, bulk_running
from operations.services.actors import LOOKUP_JOB, SEALER
from operations.services.backfilling import fetch_events
from operations.services.bulk_previewing import forget_previews
from operations.services.bulk_running import run_bulk
from operations.services.draining import drain
from operations.services.engine import default_engine
from operations.services.event_months import make_months, remove_old_months
from operations.services.identifying import forget_old_tokens
from operations.services.looking_up import look_up
from operations.services.notifying import deliver_due, notices_wait
from operations.services.reissuing import finish_reissues
from operations.services.report_applying import apply_report
from operations.services.report_reading import read_report
from operations.services.reporting import reports_left_lying
from operations.services.sealing import seal_is_due, seal_to_folder
from operations.services.subscribing import tidy_notices
from operations.services.summing import mark_changed_hours, sum_next_hour
from operations.services.sweeping import (
    check,
    claim_due_checks,
    events_wait,
    give_up_lost_sends,
)

log = structlog.get_logger(__name__)

#: How long one run of the drain goes on before it makes room for other tasks, in seconds.
_DRAIN_S = 20
#: How long one task works on a report or fetches events, in seconds; its time limit is far above.
_SLICE_S = 240


@contextmanager
def suppress_broker_errors() -> Iterator[None]:
    """Send what can be sent. What must happen stands in the database, and the sweep finds it."""
    try:
        yield
    except Exception as error:
        log.warning("broker_unreachable", error=str(error))


def wake_inbox() -> None:
    """Tell a worker that events wait. A broker that is down costs nothing: the sweep finds them."""
    with suppress_broker_errors():
        handle_events.delay()


def wake_look_ups(operation_ids: Iterable[UUID]) -> None:
    """Tell workers to look these up now. Each is planned: what gets no message the sweep finds."""
    with suppress_broker_errors():
        for operation_id in operation_ids:
            look_up_operation.delay(str(operation_id))


@shared_task(name="operations.jobs.handle_events")
def handle_events() -> None:
    """Handle the events that wait, in batches, for as long as one run lasts."""
    engine, most_again = default_engine(), 1
    ends_at = time.monotonic() + _DRAIN_S
    while time.monotonic() < ends_at:
        drained = drain(engine=engine, most_again=most_again)
        if drained is None:
            return
        most_again = drained.most_again
        wake_look_ups(drained.look_ups)
    wake_inbox()


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
        # A broker that is down costs nothing here, too: the schedule comes by every second.
        with suppress_broker_errors():
            deliver_notices.delay()


def handle_waiting_events() -> None:
    """Handle what waits, here and now."""
    engine, most_again = default_engine(), 1
    while (drained := drain(engine=engine, most_again=most_again)) is not None:
        most_again = drained.most_again
        for operation_id in drained.look_ups:
            look_up(engine=engine, operation_id=operation_id, actor=LOOKUP_JOB)


def wake_backfill(run_id: int) -> None:
    """Tell a worker that a run waits. A broker that is down costs nothing, as above."""
    with suppress_broker_errors():
        work_on_backfill.apply_async((run_id,), expires=60)


@shared_task(name="operations.jobs.work_on_backfill")
def work_on_backfill(run_id: int) -> None:
    """Fetch events for a few minutes; another task goes on from there."""
    ends_at = time.monotonic() + _SLICE_S
    more = fetch_events(
        engine=default_engine(), run_id=run_id, is_over=lambda: time.monotonic() > ends_at
    )
    wake_inbox()
    if more:
        wake_backfill(run_id)


@shared_task(name="operations.jobs.fetch_when_quiet")
def fetch_when_quiet() -> None:
    """Fetch events by itself when refunds are sent and no webhook comes."""
    quiet = timedelta(seconds=settings.RECONCILE.backfill_when_quiet_s)
    for run in backfilling.fetch_when_quiet(engine=default_engine(), quiet=quiet):
        wake_backfill(run.pk)


def wake_report(report_id: int) -> None:
    """Tell a worker that a report waits. A broker that is down costs nothing, as above."""
    with suppress_broker_errors():
        work_on_report.apply_async((report_id,), expires=60)


@shared_task(name="operations.jobs.work_on_report")
def work_on_report(report_id: int) -> None:
    """Read or apply a report for a few minutes; another task goes on from there."""
    engine = default_engine()
    ends_at = time.monotonic() + _SLICE_S
    steps: tuple[Callable[..., bool], ...] = (read_report, apply_report)
    for step in steps:
        if step(engine=engine, report_id=report_id, is_over=lambda: time.monotonic() > ends_at):
            wake_report(report_id)


def wake_bulk(run_id: int, *, workers: int = 1) -> None:
    """Tell workers that a run waits. A broker that is down costs nothing, as above."""
    with suppress_broker_errors():
        for _ in range(workers):
            work_on_bulk.apply_async((run_id,), expires=60)


@shared_task(name="operations.jobs.work_on_bulk")
def work_on_bulk(run_id: int) -> None:
    """Run on for a few minutes; another task goes on from there."""
    ends_at = time.monotonic() + _SLICE_S
    if run_bulk(engine=default_engine(), run_id=run_id, is_over=lambda: time.monotonic() > ends_at):
        wake_bulk(run_id)


@shared_task(name="operations.jobs.sum_up")
def sum_up() -> None:
    """Count the hours that changed, for as long as one run lasts; the next one goes on."""
    ends_at = time.monotonic() + _DRAIN_S
    mark_changed_hours(engine=default_engine())
    while sum_next_hour() and time.monotonic() < ends_at:
        pass


@shared_task(name="operations.jobs.count_all_money")
def count_all_money() -> None:
    """Count every payment for the pages that show all of them, when there are many."""
    count_money(now=default_engine().clock())


@shared_task(name="operations.jobs.sweep")
def sweep() -> None:
    """Find what a crash or a lost message left behind."""
    engine = default_engine()
    Heartbeat.beat(WORKER, now=engine.clock())
    give_up_lost_sends(engine=engine)
    due = claim_due_checks(engine=engine)
    # What gets no message is due again when its claim ends.
    with suppress_broker_errors():
        for operation_id in due:
            check_operation.delay(str(operation_id))
    if events_wait(engine=engine):
        wake_inbox()
    finish_reissues(engine=engine)
    for report_id in reports_left_lying(engine=engine):
        wake_report(report_id)
    for run_id in backfilling.runs_left_lying(engine=engine):
        wake_backfill(run_id)
    for run_id in bulk_running.runs_left_lying(engine=engine):
        wake_bulk(run_id)


@shared_task(name="operations.jobs.tidy")
def tidy() -> None:
    """Remove what was kept for a time and has served it."""
    engine = default_engine()
    forget_old_tokens(engine=engine)
    make_months(engine=engine)
    remove_old_months(
        engine=engine,
        days=settings.RECONCILE.event_retention_days,
        archive=settings.RECONCILE.event_archive_dir,
    )
    tidy_notices(engine=engine)
    forget_previews(engine=engine)


@shared_task(name="operations.jobs.seal")
def seal() -> None:
    """Seal the audit trail when the last seal is old enough."""
    engine = default_engine()
    if seal_is_due(engine=engine, every_s=settings.RECONCILE.seal_every_s):
        seal_to_folder(engine=engine, actor=SEALER)
