"""The inbox: what waits is claimed for a time, and ends handled, put off, or stuck.

A claim is committed before anything is done, so that nobody waits for a row that a dead or frozen
process holds: when its time is over, the next one takes the event.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg.types.numeric import Int8

from operations.models import EventHandling, Handling, InboxItem, Operation, collecting
from operations.models.statements import build, columns, run
from operations.services.engine import Engine

#: How long a claim holds, in seconds; far longer than handling takes.
CLAIM_S = 60
#: An event is stuck, and waits for a person, after this many failures in a row: some eight hours.
MOST_FAILURES = 16
_RETRY_BASE_S = 5
_RETRY_MOST_S = 3_600
_NO_RESULT = "Whoever handled it ended without a result."


@dataclass(frozen=True, slots=True)
class Claim:
    """One event that was claimed. `alone`: it locks what other events lock in another order.

    `again`: it was claimed before, and failed.
    """

    event_pk: int
    until: datetime
    alone: bool
    again: bool = False


def claim_items(*, engine: Engine, most: int, most_again: int = 1) -> list[Claim]:
    """Claim what is due, the longest due first. One whose claims keep dying becomes stuck.

    What failed before is claimed apart, `most_again` at a time, so that an event that kills its
    worker takes no other with it, time after time.

    Empty only when nothing is due that nobody else is just claiming.
    """
    now = engine.clock()
    until = now + timedelta(seconds=CLAIM_S)
    while True:
        limits = [Int8(most), until, Int8(MOST_FAILURES), _NO_RESULT, Int8(most_again)]
        rows = run(_CLAIM, [now, *limits])
        claims = [
            Claim(pk, until, alone, again)
            for pk, is_stuck, alone, again in sorted(rows)
            if not is_stuck
        ]
        if claims or not rows:
            return claims


# A claim that ended without a result counts as a failure. The item that is due for the longest
# time decides whether this claim takes those that failed or those that never did.
_CLAIM = """
WITH first AS (
    SELECT failures > 0 OR claimed_until IS NOT NULL AS has_failed
    FROM operations_inboxitem
    WHERE stuck_at IS NULL AND handle_after <= $1
    ORDER BY handle_after, event_id
    LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED
), due AS (
    SELECT event_id, failures + (claimed_until IS NOT NULL)::int AS failed,
           failures + (claimed_until IS NOT NULL)::int >= $4 AS is_stuck
    FROM operations_inboxitem
    WHERE stuck_at IS NULL AND handle_after <= $1
      AND (failures > 0 OR claimed_until IS NOT NULL) = (SELECT has_failed FROM first)
    ORDER BY handle_after, event_id
    LIMIT CASE WHEN (SELECT has_failed FROM first) THEN least($2, $6) ELSE $2 END
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE operations_inboxitem AS item
SET attempts = item.attempts + 1,
    failures = due.failed,
    error = CASE WHEN due.is_stuck AND item.error = '' THEN $5 ELSE item.error END,
    stuck_at = CASE WHEN due.is_stuck THEN $1 END,
    claimed_until = CASE WHEN NOT due.is_stuck THEN $3::timestamptz END,
    handle_after = CASE WHEN due.is_stuck THEN item.handle_after ELSE $3 END
FROM due WHERE item.event_id = due.event_id
RETURNING item.event_id, due.is_stuck,
    item.relevant AND item.refund_id = '' AND jsonb_typeof(item.facts -> 'dispute') = 'object',
    due.failed > 0
"""


def hold(claims: Sequence[Claim]) -> list[InboxItem]:
    """Lock claimed items until the transaction ends; what somebody else took over is left out."""
    values = [[claim.event_pk for claim in claims], [claim.until for claim in claims]]
    rows = [build(InboxItem, row) for row in run(_HOLD, values)]
    return sorted(rows, key=lambda item: item.event_id)


_HOLD = f"""
SELECT {columns(InboxItem, "item")}
FROM unnest($1::bigint[], $2::timestamptz[]) AS held (event_id, until)
JOIN operations_inboxitem AS item
  ON item.event_id = held.event_id AND item.claimed_until = held.until
WHERE item.stuck_at IS NULL
ORDER BY item.event_id
FOR NO KEY UPDATE OF item
"""  # noqa: S608 - columns of our own table


def finish(
    item: InboxItem, handling: Handling, *, now: datetime, operation: Operation | None = None
) -> None:
    """Write down what became of it, and take it out."""
    collecting.insert(EventHandling.of(item, handling, now=now, operation=operation))
    collecting.delete(item)


def put_off(item: InboxItem, handling: Handling, *, now: datetime) -> None:
    """Nothing went wrong, but it is not done with: it waits for its next turn."""
    item.handling, item.failures, item.error = handling, 0, ""
    item.handle_after, item.claimed_until = now + pause_after(item.attempts), None
    collecting.update(item, _MOVING)


def fail(item: InboxItem, error: str, *, now: datetime) -> None:
    """An error is kept with the item, which waits for its next turn, or for a person."""
    item.failures += 1
    item.error = error[:500]
    item.handle_after, item.claimed_until = now + pause_after(item.failures), None
    item.stuck_at = now if item.failures >= MOST_FAILURES else None
    collecting.update(item, _MOVING)


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
