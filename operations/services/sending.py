"""Sending: an attempt is committed before the bytes leave, and its answer decides what follows.

No transaction is open while the provider is called. Between the two commits only the lease and
the unfinished attempt say that a send is in flight; both outlive a crash.
"""

import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from os import getpid
from typing import assert_never
from uuid import UUID, uuid4

from operations.domain.answers import Answer, AnswerKind, RefundFacts
from operations.domain.audit import Actor
from operations.domain.budgets import CallBudget
from operations.domain.classify import Classification, Doubt, Outcome, classify
from operations.domain.identity import in_one_order, uuid7
from operations.domain.key_window import window_closes_at
from operations.domain.next_step import (
    AttemptState,
    HandOver,
    Hold,
    MarkUnknown,
    NextStep,
    Send,
    Settle,
    decide,
    in_doubt,
)
from operations.domain.standing import Related
from operations.domain.statuses import Attention, Fact, Status, UnknownReason
from operations.models import Attempt, Evidence, EvidenceSource, Operation, Payment, collecting
from operations.services.actors import SWEEP
from operations.services.engine import Engine
from operations.services.settling import (
    Learned,
    lock,
    raise_attention,
    take_fact,
    take_refund,
    write_evidence,
)

#: How long to wait before looking again whether another send of the payment is over, in seconds.
_PAYMENT_PAUSE_S = 0.2
#: How long a paused operation is left alone before it is looked at again, in seconds.
_HOLD_S = 60


#: The fields of an attempt that are written when it is over.
_ANSWER = (
    "outcome",
    "doubt",
    "attention",
    "answer_kind",
    "finished_at",
    "duration_ms",
    "http_status",
    "provider_request_id",
    "replayed",
    "should_retry",
    "retry_after_s",
    "error_type",
    "error_code",
    "message",
    "body",
    "refund",
)


class InProgress(Exception):
    """A send is in flight; nothing more was sent. `retry_after_s`: when it may be over."""

    def __init__(self, operation_id: UUID, retry_after_s: float) -> None:
        self.operation_id = operation_id
        self.retry_after_s = retry_after_s
        super().__init__(f"Operation {operation_id} is being sent.")


@dataclass(frozen=True)
class Finished:
    """An operation after one attempt; `resume_at` (UTC) when the same call sends again."""

    operation: Operation
    resume_at: datetime | None = None


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
        continue_sending(engine=engine, attempt=attempt, actor=actor, call=call)


def continue_sending(
    *, engine: Engine, attempt: Attempt, actor: Actor, call: CallBudget
) -> Operation:
    """The same, from an attempt that was begun already; the operation as this call leaves it."""
    following: Attempt | Operation = attempt
    while isinstance(following, Attempt):
        following = _send_and_follow(engine=engine, attempt=following, actor=actor, call=call)
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
                _carry_out(engine, operation, step, learned=None, now=now)
                return None
            at = max(step.at, operation.next_send_at or step.at)
            if payment_is_busy:
                at = max(at, now + timedelta(seconds=_PAYMENT_PAUSE_S * (0.5 + engine.jitter())))
            if not call.allows(at, engine.budget):
                _postpone(engine, operation, at, now)
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
    attempt = Attempt(
        id=uuid7(now),
        operation=operation,
        number=operation.attempts_made + 1,
        idempotency_key=operation.idempotency_key,
        parameters=operation.parameters,
        fence=holder,
        started_at=now,
    )
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
    *, engine: Engine, attempt: Attempt, actor: Actor, call: CallBudget
) -> Attempt | Operation:
    """One send, its answer saved, and the next attempt if the call goes on.

    Else the operation as the answer leaves it.
    """
    finished = finish_attempt(
        engine=engine,
        operation_id=attempt.operation_id,
        attempt_id=attempt.pk,
        answer=_send(engine, attempt),
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


@collecting.collecting()
def finish_attempt(
    *,
    engine: Engine,
    operation_id: UUID,
    attempt_id: UUID,
    answer: Answer,
    actor: Actor,
    call: CallBudget | None,
) -> Finished:
    """Save an answer and carry out what follows from it.

    It says when to send again if this call goes on and keeps its lease. An answer to
    an attempt that the sweep has already given up is kept as evidence, and a refund in it is
    believed; it never overwrites what happened since.
    """
    operation = lock(operation_id)
    attempt = next(row for row in operation.attempts.all() if row.pk == attempt_id)
    now = engine.clock()
    earlier = _finished(operation)
    reading = classify(
        answer,
        terms=operation.terms(),
        earlier_in_doubt=in_doubt([attempt_state(row) for row in earlier]),
        contract=engine.provider(operation.account).contract,
    )
    learned = _learned(attempt, answer, reading, actor, now)
    if attempt.outcome:
        _keep_late_answer(operation, reading, learned, now)
        return Finished(operation)
    _save_answer(attempt, answer, reading, now)
    evidence = write_evidence(operation, learned, now=now, refund=reading.refund)
    if reading.attention:
        raise_attention(operation, reading.attention, learned=learned, now=now, evidence=evidence)
    if operation.status != Status.OPEN:
        # A webhook or a look-up was faster: the answer is evidence beside it.
        if reading.refund is not None:
            take_refund(operation, reading.refund, learned=learned, now=now, evidence=evidence)
        _release(operation, now)
        return Finished(operation)
    step = decide_next(engine, operation, now)
    if isinstance(step, Send) and call is not None and call.allows(step.at, engine.budget):
        operation.change(
            now=now,
            next_send_at=step.at,
            lease_expires_at=step.at + timedelta(seconds=engine.lease_s),
        )
        return Finished(operation, step.at)
    _release(operation, now)
    _carry_out(engine, operation, step, learned=(learned, evidence), now=now)
    return Finished(operation)


@collecting.collecting()
def give_up_attempt(*, engine: Engine, operation_id: UUID, actor: Actor) -> bool:
    """Finish an attempt whose lease ran out as interrupted, and let the same rule go on.

    True when there was one. Harmless when done twice.
    """
    operation = lock(operation_id)
    now = engine.clock()
    if operation.lease_expires_at is None or operation.is_leased(now):
        return False
    attempt = next((row for row in operation.attempts.all() if not row.outcome), None)
    if attempt is not None:
        interrupted = Answer(
            kind=AnswerKind.INTERRUPTED,
            message="The process that was sending went away before the answer was saved.",
        )
        finish_attempt(
            engine=engine,
            operation_id=operation_id,
            attempt_id=attempt.pk,
            answer=interrupted,
            actor=actor,
            call=None,
        )
        return True
    _release(operation, now)
    if operation.status == Status.OPEN:
        _carry_out(engine, operation, decide_next(engine, operation, now), learned=None, now=now)
    return True


def decide_next(engine: Engine, operation: Operation, now: datetime) -> NextStep:
    """The rule's decision for an open operation with no send in flight."""
    states = [attempt_state(row) for row in _finished(operation)]
    return decide(
        created_at=operation.created_at,
        attempts=states,
        contract=engine.provider(operation.account).contract,
        budget=engine.budget,
        policy=engine.key_window,
        configuration_blocked=Attention.CONFIGURATION in operation.attention,
        paused=operation.account.paused_at is not None,
        now=now,
        jitter=engine.jitter(),
        promised_until=operation.key_window_closes_at,
    )


def attempt_state(attempt: Attempt) -> AttemptState:
    """A finished attempt as the rules see it."""
    return AttemptState(
        started_at=attempt.started_at,
        finished_at=attempt.finished_at or attempt.started_at,
        reading=Classification(
            outcome=Outcome(attempt.outcome),
            doubt=Doubt(attempt.doubt),
            refund=RefundFacts(**attempt.refund) if attempt.refund else None,
            attention=Attention(attempt.attention) if attempt.attention else None,
        ),
        retry_after_s=attempt.retry_after_s,
        should_retry=attempt.should_retry,
    )


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
        _release(operation, now)
        if step is not None:
            _carry_out(engine, operation, step, learned=None, now=now)
        return operation


def _carry_out(
    engine: Engine,
    operation: Operation,
    step: NextStep,
    *,
    learned: tuple[Learned, Evidence] | None,
    now: datetime,
) -> None:
    """Write down what the rule decided. `learned` is what it rests on, when that is an answer."""
    match step:
        case Send(at):
            _postpone(engine, operation, at, now)
        case Hold():
            operation.change(now=now, next_check_at=now + timedelta(seconds=_HOLD_S))
        case HandOver():
            operation.change(now=now, next_check_at=operation.key_window_closes_at)
        case Settle(fact, refund):
            note, evidence = learned or _rule_spoke(operation, "An earlier answer decides it.", now)
            if refund is not None:
                take_refund(operation, refund, learned=note, now=now, evidence=evidence)
                if operation.status == Status.OPEN:
                    # The refund belongs to another operation: a person has to look at both.
                    step = MarkUnknown(UnknownReason.UNREADABLE_ANSWER)
                    _carry_out(engine, operation, step, learned=(note, evidence), now=now)
                _plan_check(engine, operation, now)
            else:
                last = _finished(operation)[-1]
                take_fact(
                    operation,
                    fact,
                    learned=note,
                    now=now,
                    evidence=evidence,
                    failure_code=last.error_code or last.error_type,
                    failure_message=last.message,
                    next_check_at=None,
                )
        case MarkUnknown(reason):
            note, evidence = learned or _rule_spoke(
                operation, f"Nothing more is sent: {reason}.", now
            )
            take_fact(
                operation,
                Fact.LEFT_UNDECIDED,
                learned=note,
                now=now,
                evidence=evidence,
                unknown_reason=reason,
                next_send_at=None,
            )
            _plan_check(engine, operation, now)
        case _:
            assert_never(step)


def _rule_spoke(operation: Operation, text: str, now: datetime) -> tuple[Learned, Evidence]:
    """Evidence for a decision that rests on the clock or a budget, not on a new answer."""
    learned = Learned(
        source=EvidenceSource.ANSWER,
        summary=text,
        actor=SWEEP,
        observed_at=now,
        facts={"attempts": operation.attempts_made},
    )
    return learned, write_evidence(operation, learned, now=now)


def _postpone(engine: Engine, operation: Operation, at: datetime, now: datetime) -> None:
    """Leave it open: a check looks first, on the schedule of look-ups, and then sends again."""
    planned = operation.next_check_at
    if planned is None or planned <= now:
        pause = engine.next_lookup_after(operation.lookups_made) or timedelta(days=1)
        planned = max(at, now + pause)
    operation.change(now=now, next_send_at=at, next_check_at=planned)


def _plan_check(engine: Engine, operation: Operation, now: datetime) -> None:
    """Plan the first look-up of an operation that waits for its end."""
    if operation.status not in (Status.UNKNOWN, Status.PROCESSING):
        return
    pause = engine.next_lookup_after(operation.lookups_made)
    operation.change(now=now, next_check_at=now + pause if pause else None)


def _release(operation: Operation, now: datetime) -> None:
    operation.change(now=now, lease_owner="", lease_expires_at=None)


def _lease_left_s(operation: Operation, now: datetime) -> float:
    left = (operation.lease_expires_at - now).total_seconds() if operation.lease_expires_at else 1
    return max(1.0, min(left, 5.0))


def _finished(operation: Operation) -> Sequence[Attempt]:
    """Its finished attempts, oldest first, as they were read with its lock."""
    return [attempt for attempt in operation.attempts.all() if attempt.outcome]


def _keep_late_answer(
    operation: Operation, reading: Classification, learned: Learned, now: datetime
) -> None:
    evidence = write_evidence(operation, learned, now=now, refund=reading.refund)
    if reading.refund is not None:
        take_refund(operation, reading.refund, learned=learned, now=now, evidence=evidence)


def _save_answer(attempt: Attempt, answer: Answer, reading: Classification, now: datetime) -> None:
    """The one write that an attempt gets after it was sent."""
    attempt.outcome = reading.outcome
    attempt.doubt = reading.doubt
    attempt.attention = reading.attention or ""
    attempt.answer_kind = answer.kind
    attempt.finished_at = now
    attempt.duration_ms = answer.duration_ms
    attempt.http_status = answer.http_status
    attempt.provider_request_id = answer.request_id
    attempt.replayed = answer.replayed
    attempt.should_retry = answer.should_retry
    attempt.retry_after_s = answer.retry_after_s
    attempt.error_type = answer.error_type[:100]
    attempt.error_code = answer.error_code[:100]
    attempt.message = answer.message[:500]
    attempt.body = answer.body
    attempt.refund = asdict(reading.refund) if reading.refund else None
    collecting.update(attempt, _ANSWER)


def _learned(
    attempt: Attempt,
    answer: Answer,
    reading: Classification,
    actor: Actor,
    now: datetime,
) -> Learned:
    return Learned(
        source=EvidenceSource.ANSWER,
        summary=answer_in_words(answer, reading),
        actor=actor,
        observed_at=now,
        attempt=attempt,
        facts={
            "attempt": attempt.number,
            "outcome": reading.outcome,
            "doubt": reading.doubt,
            "http_status": answer.http_status,
            "replayed": answer.replayed,
            "request_id": answer.request_id,
            "body": answer.body,
        },
    )


def answer_in_words(answer: Answer, reading: Classification) -> str:
    """One sentence on what came back, without a word on what it means for the money."""
    match answer.kind:
        case AnswerKind.NOT_SENT:
            return "No connection to the provider was made; nothing was sent."
        case AnswerKind.CONNECTION_LOST:
            return f"The connection ended before an answer came. {answer.message}".strip()
        case AnswerKind.INTERRUPTED:
            return answer.message
        case AnswerKind.UNREADABLE:
            return f"An answer came (HTTP {answer.http_status}) that cannot be read as a refund."
        case AnswerKind.RESPONSE:
            pass
    if reading.refund is not None:
        return f"The provider answered with refund {reading.refund.id}: {reading.refund.status}."
    said = answer.message or answer.error_code or answer.error_type or "no message"
    replay = ", a repetition of its first answer" if answer.replayed else ""
    return f"The provider answered HTTP {answer.http_status}{replay}: {said}"
