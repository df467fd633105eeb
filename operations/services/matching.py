"""Matching: which operation an event speaks of, by proof only, and what it changes there.

In this order: the refund's id is known; its metadata names the operation; the call that caused
the event carried the operation's key. Never by amount, never because it is the only one.

Events are handled in their order, one or five hundred in a transaction, by the same lines: what the
rules need is read for all of them at once (`ground`), and the writes are collected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from operations.domain.answers import RefundFacts
from operations.domain.contradiction import other_terms
from operations.domain.dispute import DisputeFacts
from operations.domain.matching import our_mark
from operations.domain.statuses import Status
from operations.models import Handling, InboxItem, Operation, collecting
from operations.services.believing import Taken, take_refund
from operations.services.disputing import take_dispute
from operations.services.engine import Engine
from operations.services.ground import Ground, Told, survey
from operations.services.learning import Learned
from operations.services.orphan_events import keep_orphan
from operations.services.seeing import see_refund
from operations.services.settling import raise_attention


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """What became of one event. `look_up` asks for a look-up of this operation."""

    handling: Handling
    operation: Operation | None = None
    look_up: UUID | None = None


def match_all(*, engine: Engine, items: Sequence[InboxItem]) -> list[tuple[InboxItem, Handled]]:
    """Let these events change what they prove, inside a transaction that collects its writes.

    An operation changes by one event in each statement that is sent, so that every change counts
    as one and finds the row as the change before it left it: an event that meets an operation
    that is about to be written waits until that is done.
    """
    ground = survey(engine=engine, items=items)
    handled: list[tuple[InboxItem, Handled]] = []
    waiting: list[Told] = ground.events
    while waiting:
        later: list[Told] = []
        held: set[object] = set()
        for event in waiting:
            touched = ground.touched_by(event)
            if not held.isdisjoint(touched) or ground.is_being_written(touched):
                held |= touched
                later.append(event)
            else:
                handled.append((event.item, _handle(ground, event)))
        if later:
            collecting.flush()
        waiting = later
    return handled


def _handle(ground: Ground, event: Told) -> Handled:
    facts = event.facts
    if not facts.relevant:
        return Handled(handling=Handling.IGNORED)
    if ground.is_of_another_mode(event):
        return Handled(handling=Handling.WRONG_MODE)
    if facts.dispute is not None:
        return _handle_dispute(ground, event, facts.dispute)
    results = [_handle_refund(ground, event, refund) for refund in facts.refunds]
    if not facts.refunds:
        return _by_request_key(ground, event)
    return min(results, key=lambda result: _IMPORTANCE.index(result.handling))


def _handle_dispute(ground: Ground, event: Told, dispute: DisputeFacts) -> Handled:
    """A dispute marks the operations of its payment; it settles nothing."""
    account = ground.account_of(event)
    if account is None:
        return Handled(handling=Handling.NOT_OURS)
    learned = event.learned(f"dispute {dispute.id} is {dispute.status}.", {"dispute": dispute.id})
    first, is_new = take_dispute(account=account, dispute=dispute, learned=learned, now=ground.now)
    if first is None:
        return Handled(handling=Handling.NOT_OURS)
    return Handled(handling=Handling.APPLIED if is_new else Handling.NO_CHANGE, operation=first)


#: When an event carries several refunds, the first of these names what became of it.
_IMPORTANCE = (
    Handling.MISMATCH,
    Handling.APPLIED,
    Handling.NEEDS_LOOKUP,
    Handling.NO_CHANGE,
    Handling.UNMATCHED,
    Handling.OTHER_ENVIRONMENT,
    Handling.NOT_OURS,
    Handling.IGNORED,
    Handling.WRONG_MODE,
)


def _handle_refund(ground: Ground, event: Told, refund: RefundFacts) -> Handled:
    """One refund in an event: found by id, by mark, or by the key of a call about one refund."""
    learned = event.learned_of(refund)
    operation_id = ground.operation_of(event, refund)
    operation = ground.operation(operation_id)
    if operation is not None:
        return _apply(ground, event, learned, refund, operation)
    _keep_foreign(ground, event, learned, refund)
    if operation_id is not None:
        return Handled(handling=Handling.UNMATCHED)
    is_marked = our_mark(refund.metadata) is not None
    return Handled(handling=Handling.OTHER_ENVIRONMENT if is_marked else Handling.NOT_OURS)


def _apply(
    ground: Ground, event: Told, learned: Learned, refund: RefundFacts, operation: Operation
) -> Handled:
    misplaced = ground.misplacement(event, operation)
    if misplaced:
        found = other_terms(refund, misplaced)
        raise_attention(operation, found, learned=learned, now=ground.now, refund=refund)
        _keep_foreign(ground, event, learned, refund)
        return Handled(handling=Handling.MISMATCH, operation=operation)
    taken = take_refund(operation, refund, learned=learned, now=ground.now)
    _plan_check(ground, operation)
    # When in doubt, the refund as the provider has it now is what is believed.
    in_doubt = taken in (Taken.UNDECIDED, Taken.DOUBTFUL)
    return Handled(
        handling=_HANDLING_OF[taken],
        operation=operation,
        look_up=_ask_for_look_up(ground, operation) if in_doubt else None,
    )


#: When the sweep looks for itself, in seconds: whoever handled the event asks for it at once.
_LOOK_UP_S = 15


def _ask_for_look_up(ground: Ground, operation: Operation) -> UUID:
    """Plan a look-up with what the event changed, whatever the status: a message may be lost."""
    by = ground.now + timedelta(seconds=_LOOK_UP_S)
    if operation.next_check_at is None or operation.next_check_at > by:
        operation.plan(now=ground.now, next_check_at=by)
    return operation.pk


def _plan_check(ground: Ground, operation: Operation) -> None:
    """Plan the first look-up of a refund that was announced before its send was over.

    Whoever sends plans only what its own answer leaves undecided.
    """
    if operation.status != Status.PROCESSING or operation.next_check_at is not None:
        return
    pause = ground.engine.next_lookup_after(operation.lookups_made, Status.PROCESSING)
    if pause:
        operation.plan(now=ground.now, next_check_at=ground.now + pause)


_HANDLING_OF = {
    Taken.CHANGED: Handling.APPLIED,
    Taken.NOTHING_NEW: Handling.NO_CHANGE,
    Taken.UNDECIDED: Handling.NEEDS_LOOKUP,
    Taken.DOUBTFUL: Handling.NEEDS_LOOKUP,
    Taken.SECOND_REFUND: Handling.APPLIED,
    Taken.MISMATCH: Handling.MISMATCH,
}


def _by_request_key(ground: Ground, event: Told) -> Handled:
    """An event about a charge, caused by a call with our key: the list will show the refund."""
    operation = ground.operation(ground.operation_with_key(event))
    if operation is None or not ground.names_the_payment(event, operation):
        # Somebody refunded something of the payment: the list shows what, beside what is unknown.
        keep_orphan(ground, event)
        doubted = ground.operation(ground.in_doubt_on(event))
        look_up = _ask_for_look_up(ground, doubted) if doubted is not None else None
        return Handled(handling=Handling.NOT_OURS, look_up=look_up)
    if operation.provider_object_id:
        return Handled(handling=Handling.NO_CHANGE, operation=operation)
    return Handled(
        handling=Handling.NEEDS_LOOKUP,
        operation=operation,
        look_up=_ask_for_look_up(ground, operation),
    )


def _keep_foreign(ground: Ground, event: Told, learned: Learned, refund: RefundFacts) -> None:
    """A refund that is not proven to be an operation's is kept: it counts against the till."""
    account = ground.account_of(event)
    if account is None:
        keep_orphan(ground, event)
    else:
        see_refund(account, refund, operation=None, learned=learned, now=ground.now)
