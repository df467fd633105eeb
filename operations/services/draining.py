"""Draining: what waits in the inbox is claimed in batches, and each batch is handled as one.

An event that can't be handled takes its batch back; the batch is then handled in halves, down to
the one that is to blame, so that it delays the others by a few transactions and blocks none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from uuid import UUID

import structlog
from django.db import transaction

from operations.models import Handling, InboxItem, collecting
from operations.services.engine import Engine
from operations.services.inbox import Claim, claim_items, fail, finish, hold, put_off
from operations.services.matching import Handled, match_all

log = structlog.get_logger(__name__)

#: How many events are handled in one transaction.
BATCH = 500
#: How many that failed before are handled in one transaction at most.
_MOST_AGAIN = 64
#: An event with our mark and no operation is tried again for this long.
_GIVE_UP_AFTER = timedelta(days=3)


@dataclass(kw_only=True)
class Drained:
    """What one batch came to. `look_ups`: the operations that ask for a look-up, each once.

    `most_again`: how many that failed before the next claim may take.
    """

    claimed: int
    most_again: int = 1
    handled: int = 0
    failed: int = 0
    look_ups: dict[UUID, None] = field(default_factory=dict)


def drain(*, engine: Engine, most: int = BATCH, most_again: int = 1) -> Drained | None:
    """Claim what is due, the longest due first, and handle it. None when nothing is due.

    `most_again`: how many that failed before. It grows while they succeed, so that what an outage
    left is soon done, and starts anew with each run: what kills its worker can't take the same
    events with it for long.
    """
    claims = claim_items(engine=engine, most=most, most_again=most_again)
    if not claims:
        return None
    drained = Drained(claimed=len(claims), most_again=most_again)
    for part in _parts(claims):
        _handle(engine, part, drained)
    if drained.failed:
        drained.most_again = 1
    elif claims[0].again:
        drained.most_again = min(most, _MOST_AGAIN, 2 * most_again)
    return drained


def handle_next_event(*, engine: Engine) -> UUID | bool | None:
    """Handle the event that is due for the longest time, in a transaction of its own.

    None when nothing is due; the id of an operation to look up when the event asks for it; else
    True.
    """
    drained = drain(engine=engine, most=1)
    if drained is None:
        return None
    return next(iter(drained.look_ups), True)


def _parts(claims: Sequence[Claim]) -> Iterator[list[Claim]]:
    """What is handled together, in order; what has to be alone is."""
    for alone, run in groupby(claims, key=lambda claim: claim.alone):
        if alone:
            yield from ([claim] for claim in run)
        else:
            yield list(run)


def _handle(engine: Engine, claims: Sequence[Claim], drained: Drained) -> None:
    try:
        handled = _handle_together(engine, claims)
    except Exception as error:
        if len(claims) == 1:
            _keep_error(engine, claims[0], error)
            drained.failed += 1
            return
        middle = len(claims) // 2
        _handle(engine, claims[:middle], drained)
        _handle(engine, claims[middle:], drained)
        return
    drained.handled += len(handled)
    drained.look_ups |= {one.look_up: None for one in handled if one.look_up}


def _handle_together(engine: Engine, claims: Sequence[Claim]) -> list[Handled]:
    """All of it in one transaction. What somebody else has taken over meanwhile is left to him."""
    with collecting.collecting(in_groups=True):
        results = match_all(engine=engine, items=hold(claims))
        now = engine.clock()
        for item, handled in results:
            conclude(item, handled, now)
    return [handled for _, handled in results]


def conclude(item: InboxItem, handled: Handled, now: datetime) -> None:
    """Write down what became of an event, or let it wait for the operation that it names."""
    waits_on = handled.handling is Handling.UNMATCHED and now - item.received_at < _GIVE_UP_AFTER
    if waits_on:
        put_off(item, handled.handling, now=now)
    else:
        finish(item, handled.handling, now=now, operation=handled.operation)


@transaction.atomic
def _keep_error(engine: Engine, claim: Claim, error: Exception) -> None:
    log.warning("event_not_handled", event_pk=claim.event_pk, error=repr(error))
    for item in hold([claim]):
        fail(item, f"{type(error).__name__}: {error}", now=engine.clock())
