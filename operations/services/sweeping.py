"""Sweeping rows, not messages: what a crash or a lost message left behind is found and goes on."""

from datetime import timedelta
from uuid import UUID

import structlog
from django.db import transaction

from operations.domain.budgets import CallBudget
from operations.domain.next_step import in_doubt
from operations.domain.statuses import SETTLED, Status
from operations.models import InboxItem, Operation
from operations.services.actors import LOOKUP_JOB, SWEEP
from operations.services.deciding import attempt_state
from operations.services.engine import Engine
from operations.services.finishing import give_up_attempt
from operations.services.looking_up import look_up
from operations.services.sending import InProgress, send_until_decided

log = structlog.get_logger(__name__)

#: How many rows one sweep takes on.
_BATCH = 100
#: How long a check that was handed to a worker is left alone, in seconds.
_CHECK_CLAIM_S = 45


def give_up_lost_sends(*, engine: Engine) -> int:
    """Finish the attempts whose lease ran out. Returns how many there were."""
    lost = Operation.objects.filter(lease_expires_at__lte=engine.clock()).order_by(
        "lease_expires_at"
    )
    ids = list(lost.values_list("pk", flat=True)[:_BATCH])
    return sum(_give_up_or_leave(engine, operation_id) for operation_id in ids)


def _give_up_or_leave(engine: Engine, operation_id: UUID) -> bool:
    """One row that can't be handled delays no other; the next sweep tries it again."""
    try:
        return _give_up(engine, operation_id)
    except Exception:
        log.exception("attempt_not_given_up", operation=str(operation_id))
        return False


@transaction.atomic
def _give_up(engine: Engine, operation_id: UUID) -> bool:
    """Give one up, unless somebody holds its row: then the next sweep finds it again."""
    is_free = (
        Operation.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
        .filter(pk=operation_id)
        .exists()
    )
    return is_free and give_up_attempt(engine=engine, operation_id=operation_id, actor=SWEEP)


@transaction.atomic
def claim_due_checks(*, engine: Engine) -> list[UUID]:
    """The operations whose check is due, each claimed so that another sweep leaves it alone."""
    now = engine.clock()
    due = (
        Operation.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
        .filter(next_check_at__lte=now)
        .order_by("next_check_at")[:_BATCH]
    )
    claimed = []
    for operation in due:
        if operation.is_leased(now):
            continue
        operation.plan(now=now, next_check_at=now + timedelta(seconds=_CHECK_CLAIM_S))
        claimed.append(operation.pk)
    return claimed


def events_wait(*, engine: Engine) -> bool:
    """Whether an event waits that a lost message left unhandled."""
    return InboxItem.objects.filter(
        stuck_at__isnull=True, handle_after__lte=engine.clock()
    ).exists()


def check(*, engine: Engine, operation_id: UUID) -> None:
    """One due check: look first, and send again only if it is still open and may be sent.

    A settled operation has one only when something was told of it that is in doubt. Harmless when
    run twice.
    """
    operation = Operation.objects.get(pk=operation_id)
    is_over = operation.status in SETTLED and operation.next_check_at is None
    if is_over or operation.is_leased(engine.clock()):
        return
    finished = operation.attempts.exclude(outcome="").order_by("number")
    if operation.status != Status.OPEN or in_doubt([attempt_state(row) for row in finished]):
        look_up(engine=engine, operation_id=operation_id, actor=LOOKUP_JOB)
        operation.refresh_from_db()
    if operation.status != Status.OPEN:
        return
    budget = CallBudget.start(engine.budget, engine.clock())
    once = CallBudget(attempts_left=1, ends_at=budget.ends_at)
    try:
        send_until_decided(engine=engine, operation_id=operation_id, actor=LOOKUP_JOB, call=once)
    except InProgress:
        return
