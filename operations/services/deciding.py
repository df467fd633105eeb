"""Deciding: the rule is asked what comes next for an open operation, and it is written down."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import assert_never

from operations.domain.answers import RefundFacts
from operations.domain.classify import Classification, Doubt, Outcome
from operations.domain.next_step import (
    AttemptState,
    HandOver,
    Hold,
    MarkUnknown,
    NextStep,
    Send,
    Settle,
    decide,
)
from operations.domain.statuses import Attention, Fact, Status, UnknownReason
from operations.models import Attempt, Evidence, EvidenceSource, Operation
from operations.queries.locked import attempts_of
from operations.services.actors import SWEEP
from operations.services.believing import take_refund
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.settling import take_fact, write_evidence

#: How long a paused operation is left alone before it is looked at again, in seconds.
_HOLD_S = 60


def decide_next(engine: Engine, operation: Operation, now: datetime) -> NextStep:
    """The rule's decision for an open operation with no send in flight."""
    states = [attempt_state(row) for row in finished_attempts(operation)]
    return decide(
        created_at=operation.created_at,
        attempts=states,
        contract=engine.provider(operation.account).contract,
        budget=engine.budget,
        policy=engine.key_window,
        configuration_blocked=Attention.CONFIGURATION in operation.attention,
        paused=operation.account.paused_at is not None,
        dispute_blocks=(
            operation.payment.refunds_blocked and Attention.DISPUTED in operation.attention
        ),
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


def carry_out(
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
            postpone(engine, operation, at, now)
        case Hold():
            planned = operation.next_check_at
            if planned is None or planned <= now:
                planned = now + timedelta(seconds=_HOLD_S)
            operation.plan(now=now, next_check_at=planned)
        case HandOver():
            ends_at = operation.key_window_closes_at or now + timedelta(days=1)
            operation.plan(now=now, next_check_at=ends_at)
        case Settle(fact, refund):
            note, evidence = learned or _rule_spoke(operation, "An earlier answer decides it.", now)
            if refund is not None:
                take_refund(operation, refund, learned=note, now=now, evidence=evidence)
                if operation.status == Status.OPEN:
                    # The refund belongs to another operation: a person has to look at both.
                    step = MarkUnknown(UnknownReason.UNREADABLE_ANSWER)
                    carry_out(engine, operation, step, learned=(note, evidence), now=now)
                _plan_check(engine, operation, now)
            else:
                last = finished_attempts(operation)[-1]
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


def postpone(engine: Engine, operation: Operation, at: datetime, now: datetime) -> None:
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


def release(operation: Operation, now: datetime) -> None:
    operation.change(now=now, lease_owner="", lease_expires_at=None)


def finished_attempts(operation: Operation) -> Sequence[Attempt]:
    """Its finished attempts, oldest first, as they were read with its lock."""
    return [attempt for attempt in attempts_of(operation) if attempt.outcome]
