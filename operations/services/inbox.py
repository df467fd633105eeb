"""The inbox: what waits is claimed for a time, and ends handled, put off, or stuck.

A claim is committed before anything is done, so that nobody waits for a row that a dead or frozen
process holds: when its time is over, the next one takes the event.
"""

from datetime import datetime, timedelta

from django.db import transaction

from operations.models import EventHandling, Handling, InboxItem, Operation
from operations.services.engine import Engine

#: How long a claim holds, in seconds; far longer than handling takes.
CLAIM_S = 60
#: An event is stuck, and waits for a person, after this many failures in a row: some eight hours.
MOST_FAILURES = 16
_RETRY_BASE_S = 5
_RETRY_MOST_S = 3_600
_NO_RESULT = "Whoever handled it ended without a result."


@transaction.atomic
def claim_items(*, engine: Engine, most: int) -> list[InboxItem]:
    """Claim what is due, the longest due first. One whose claims keep dying becomes stuck.

    Empty only when nothing is due that nobody else is just claiming.
    """
    now = engine.clock()
    while True:
        due = list(
            InboxItem.objects.select_for_update(no_key=True, skip_locked=True)
            .filter(stuck_at__isnull=True, handle_after__lte=now)
            .order_by("handle_after", "event")[:most]
        )
        claimed = [item for item in due if _claim(item, now)]
        if claimed or not due:
            return claimed


def _claim(item: InboxItem, now: datetime) -> bool:
    item.attempts += 1
    if item.claimed_until is not None:
        item.failures += 1
    if item.failures >= MOST_FAILURES:
        item.claimed_until, item.stuck_at = None, now
        item.error = item.error or _NO_RESULT
    else:
        item.claimed_until = item.handle_after = now + timedelta(seconds=CLAIM_S)
    item.save(update_fields=_MOVING)
    return item.stuck_at is None


def hold(item: InboxItem) -> bool:
    """Lock a claimed item until the transaction ends; False when somebody else took it over."""
    held = InboxItem.objects.select_for_update(no_key=True).filter(
        pk=item.pk, claimed_until=item.claimed_until, stuck_at__isnull=True
    )
    return held.exists()


def finish(
    item: InboxItem, handling: Handling, *, now: datetime, operation: Operation | None = None
) -> None:
    """Write down what became of it, and take it out."""
    EventHandling.of(item, handling, now=now, operation=operation).save(force_insert=True)
    InboxItem.objects.filter(pk=item.pk).delete()


def put_off(item: InboxItem, handling: Handling, *, now: datetime) -> None:
    """Nothing went wrong, but it is not done with: it waits for its next turn."""
    item.handling, item.failures, item.error = handling, 0, ""
    item.handle_after, item.claimed_until = now + pause_after(item.attempts), None
    item.save(update_fields=_MOVING)


def fail(item: InboxItem, error: str, *, now: datetime) -> None:
    """An error is kept with the item, which waits for its next turn, or for a person."""
    item.failures += 1
    item.error = error[:500]
    item.handle_after, item.claimed_until = now + pause_after(item.failures), None
    item.stuck_at = now if item.failures >= MOST_FAILURES else None
    item.save(update_fields=_MOVING)


def pause_after(attempts: int) -> timedelta:
    """The pause before the next try: twice as long each time, up to an hour."""
    return timedelta(seconds=min(_RETRY_MOST_S, _RETRY_BASE_S * 2 ** min(attempts - 1, 20)))


_MOVING = [
    "handle_after",
    "claimed_until",
    "attempts",
    "failures",
    "handling",
    "error",
    "stuck_at",
]
