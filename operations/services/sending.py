"""Sending: an attempt is committed before the bytes leave, and its answer decides what follows.

No transaction is open while the provider is called. Between the two commits only the lease and
the unfinished attempt say that a send is in flight; both outlive a crash.
"""

import socket
from collections.abc import Sequence
from datetime import datetime, timedelta
from os import getpid
from uuid import UUID, uuid4

from operations.domain.answers import Answer, AnswerKind
from operations.domain.audit import Actor
from operations.domain.budgets import CallBudget
from operations.domain.identity import in_one_order, uuid7
from operations.domain.key_window import window_closes_at
from operations.domain.next_step import (
    Send,
)
from operations.domain.standing import Related
from operations.domain.statuses import Status
from operations.models import Attempt, Operation, Payment, collecting
from operations.models.statements import made
from operations.services.actors import SWEEP
from operations.services.deciding import (
    carry_out,
    decide_next,
    postpone,
    release,
)
from operations.services.engine import Engine
from operations.services.finishing import (
    Begun,
    finish_as_committed,
    finish_attempt,
    give_up_attempt,
)
from operations.services.settling import lock

#: How long to wait before looking again whether another send of the payment is over, in seconds.
_PAYMENT_PAUSE_S = 0.2


class InProgress(Exception):
    """A send is in flight; nothing more was sent. `retry_after_s`: when it may be over."""

    def __init__(self, operation_id: UUID, retry_after_s: float) -> None:
        self.operation_id = operation_id
        self.retry_after_s = retry_after_s
        super().__init__(f"Operation {operation_id} is being sent.")


def send_until_decided(
    *, engine: Engine, operation_id: UUID, actor: Actor, call: CallBudget | None = None
) -> None:
    """Send, wait and send again until the operation leaves `open` or this call's budget is spent.

    Raises InProgress when somebody else holds the lease.
    """
    give_up_attempt(engine=engine, operation_id=operation_id, actor=SWEEP)
    holder = new_holder()
    call = call or CallBudget.start(engine.budget, engine.clock())
    attempt = begin_attempt(engine=engine, operation_id=operation_id, holder=holder, call=call)
    if attempt is not None:
        continue_sending(engine=engine, begun=attempt, actor=actor, call=call)


def continue_sending(
    *, engine: Engine, begun: Attempt | Begun, actor: Actor, call: CallBudget
) -> Operation:
    """The same, from an attempt that was begun already; the operation as this call leaves it."""
    following: Attempt | Begun | Operation = begun
    while not isinstance(following, Operation):
        following = _send_and_follow(engine=engine, begun=following, actor=actor, call=call)
        call = call.spend()
    return following


def new_holder() -> str:
    """A name for a lease that nobody else uses: host, process and a random part."""
    return f"{socket.gethostname()[:60]}:{getpid()}:{uuid4().hex[:12]}"


def holder_pid(holder: str) -> int:
    """The process that holds a lease, on the host that the lease names."""
    return int(holder.rsplit(":", 2)[1])


def begin_attempt(
    *, engine: Engine, operation_id: UUID, holder: str, call: CallBudget
) -> Attempt | None:
    """Decide, and if the decision is to send, commit the attempt and take the lease.

    Waits for a send that is due later, and for another send of the same payment, if the call's
    budget allows. None: nothing to send now. Raises InProgress when somebody else holds the lease.
    """
    while True:
        with collecting.collecting():
            payment_is_busy = _lock_payment_of(operation_id, engine.clock())
            operation = lock(operation_id)
            now = engine.clock()
            if operation.is_leased(now):
                raise InProgress(operation_id, _lease_left_s(operation, now))
            if operation.status != Status.OPEN:
                return None
            if operation.lease_expires_at is not None:
                return None  # A lease ran out just now: that attempt is finished first.
            step = decide_next(engine, operation, now)
            if not isinstance(step, Send):
                carry_out(engine, operation, step, learned=None, now=now)
                return None
            at = max(step.at, operation.next_send_at or step.at)
            if payment_is_busy:
                at = max(at, now + timedelta(seconds=_PAYMENT_PAUSE_S * (0.5 + engine.jitter())))
            if not call.allows(at, engine.budget):
                postpone(engine, operation, at, now)
                return None
            if at <= now:
                return start_attempt(engine, operation, holder=holder, now=now)
        engine.sleep((at - now).total_seconds())


def may_send_at_once(operation: Operation, others: Sequence[Related], now: datetime) -> bool:
    """Whether nothing stands between a new operation and its first send.

    `others` are the operations of its payment, whose lock the caller holds: sends of one payment
    go one after the other.
    """
    busy = any(row.lease_expires_at and row.lease_expires_at > now for row in others)
    return operation.account.paused_at is None and not busy


def leave_to_the_sweep(engine: Engine, operation: Operation, now: datetime) -> None:
    """Let the sweep go on with an operation that was opened without an attempt."""
    pause = timedelta(seconds=engine.lookup_schedule_s[0])
    operation.change(now=now, next_check_at=now + pause)


def _lock_payment_of(operation_id: UUID, now: datetime) -> bool:
    """Lock the payment before its operation; tells whether another refund of it is in flight."""
    payment = (
        Payment.objects.select_for_update(no_key=True).filter(operations__pk=operation_id).first()
    )
    if payment is None:
        return False
    busy = payment.operations.exclude(pk=operation_id).filter(lease_expires_at__gt=now)
    return busy.exists()


def start_attempt(engine: Engine, operation: Operation, *, holder: str, now: datetime) -> Attempt:
    """Write the attempt and the lease. The caller commits before anything is sent."""
    provider = engine.provider(operation.account)
    first_sent_at = operation.first_sent_at or now
    attempt = made(
        Attempt,
        id=uuid7(now),
        operation_id=operation.pk,
        number=operation.attempts_made + 1,
        idempotency_key=operation.idempotency_key,
        parameters=operation.parameters,
        fence=holder,
        started_at=now,
    )
    attempt.operation = operation
    operation.change(
        now=now,
        attempts_made=operation.attempts_made + 1,
        first_sent_at=first_sent_at,
        last_sent_at=now,
        key_window_closes_at=window_closes_at(
            first_send=first_sent_at,
            contract=provider.contract,
            policy=engine.key_window,
            promised_until=operation.key_window_closes_at,
        ),
        next_send_at=None,
        lease_owner=holder,
        lease_expires_at=now + timedelta(seconds=engine.lease_s),
    )
    collecting.insert(attempt)
    return attempt


def _send_and_follow(
    *, engine: Engine, begun: Attempt | Begun, actor: Actor, call: CallBudget
) -> Attempt | Operation:
    """One send, its answer saved, and the next attempt if the call goes on.

    Else the operation as the answer leaves it.
    """
    attempt = begun.attempt if isinstance(begun, Begun) else begun
    answer = _send(engine, attempt)
    if isinstance(begun, Begun):
        settled = finish_as_committed(
            engine=engine, begun=begun, answer=answer, actor=actor, call=call.spend()
        )
        if settled is not None:
            return settled
    finished = finish_attempt(
        engine=engine,
        operation_id=attempt.operation_id,
        attempt_id=attempt.pk,
        answer=answer,
        actor=actor,
        call=call.spend(),
    )
    if finished.resume_at is None:
        return finished.operation
    engine.sleep(max(0.0, (finished.resume_at - engine.clock()).total_seconds()))
    return _next_under_lease(engine, attempt)


def _send(engine: Engine, attempt: Attempt) -> Answer:
    """Send once, unless this process slept for so long that its lease no longer covers a send."""
    if _woke_too_late(engine, attempt):
        return Answer(
            kind=AnswerKind.NOT_SENT,
            message="Not sent: the process that was to send was held up for too long.",
        )
    account = attempt.operation.account
    return engine.provider(account).create_refund(
        parameters=in_one_order(attempt.parameters),
        idempotency_key=attempt.idempotency_key,
        account=account.provider_account,
    )


def _woke_too_late(engine: Engine, attempt: Attempt) -> bool:
    """Whether others may have gone on by now, or even the key's window may have closed."""
    covered_s = max(engine.lease_s - engine.budget.send_s, engine.lease_s / 2)
    return engine.clock() >= attempt.started_at + timedelta(seconds=covered_s)


def _next_under_lease(engine: Engine, previous: Attempt) -> Attempt | Operation:
    """The next attempt of the same call, if the lease is still ours and the rule still says so."""
    with collecting.collecting():
        operation = lock(previous.operation_id)
        now = engine.clock()
        if operation.lease_owner != previous.fence:
            return operation
        step = decide_next(engine, operation, now) if operation.status == Status.OPEN else None
        if isinstance(step, Send) and operation.is_leased(now):
            return start_attempt(engine, operation, holder=previous.fence, now=now)
        release(operation, now)
        if step is not None:
            carry_out(engine, operation, step, learned=None, now=now)
        return operation


def _lease_left_s(operation: Operation, now: datetime) -> float:
    left = (operation.lease_expires_at - now).total_seconds() if operation.lease_expires_at else 1
    return max(1.0, min(left, 5.0))
