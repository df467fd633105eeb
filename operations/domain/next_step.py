"""What happens next with an operation that is open and has no send in flight.

A pure function of the operation, its attempts, the provider's contract and the time. The value it
returns is the whole decision; carrying it out is the business of the services.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from operations.domain.answers import RefundFacts
from operations.domain.budgets import Budget, backoff_s
from operations.domain.classify import Classification, Doubt, Outcome
from operations.domain.contract import Contract
from operations.domain.key_window import KeyWindowPolicy, window_closes_at
from operations.domain.refund_state import fact_of
from operations.domain.statuses import Attention, Fact, UnknownReason


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptState:
    """One finished attempt. Times in UTC; `retry_after_s` as the provider asked."""

    started_at: datetime
    finished_at: datetime
    reading: Classification
    retry_after_s: float | None = None
    should_retry: bool | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Send with the operation's key, not before `at`."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Settle:
    """The answer itself decides: take this fact. `refund` is the refund that proves it."""

    fact: Fact
    refund: RefundFacts | None = None


@dataclass(frozen=True, slots=True)
class MarkUnknown:
    """Nothing is sent any more; look-ups and people go on."""

    reason: UnknownReason


@dataclass(frozen=True, slots=True)
class HandOver:
    """Sending again is pointless until a person has mended something."""

    attention: Attention


@dataclass(frozen=True, slots=True)
class Hold:
    """Sending is paused: nothing is decided against the operation, and nothing is sent."""


NextStep = Send | Settle | MarkUnknown | HandOver | Hold


def decide(
    *,
    created_at: datetime,
    attempts: Sequence[AttemptState],
    contract: Contract,
    budget: Budget,
    policy: KeyWindowPolicy,
    configuration_blocked: bool,
    now: datetime,
    jitter: float,
    promised_until: datetime | None = None,
    paused: bool = False,
    dispute_blocks: bool = False,
) -> NextStep:
    """The next step of an open operation. `jitter` is a random number from 0 to 1.

    `attempts` are all finished attempts, oldest first. `configuration_blocked`: a person has not
    yet cleared the flag that key, account or mode are wrong. `promised_until` is the end of the
    key's window as it was written down at an earlier send: a longer one that was configured since
    does not stretch it. `paused`: people have stopped sending on this account. `dispute_blocks`:
    the provider refuses refunds of the payment while it is disputed. Nothing here knows a
    provider's name.
    """
    said = _what_the_answers_say(attempts)
    if said is not None:
        return said
    if not attempts:
        step = _first_send(created_at=created_at, contract=contract, policy=policy, now=now)
        return _held(step, paused=paused, dispute_blocks=dispute_blocks)
    step = _send_again(
        attempts,
        created_at=created_at,
        contract=contract,
        budget=budget,
        policy=policy,
        configuration_blocked=configuration_blocked,
        now=now,
        jitter=jitter,
        promised_until=promised_until,
    )
    return _held(step, paused=paused, dispute_blocks=dispute_blocks)


def _held(step: NextStep, *, paused: bool, dispute_blocks: bool) -> NextStep:
    """Only a send is held up; what ends it by itself goes on."""
    if not isinstance(step, Send):
        return step
    if dispute_blocks:
        return HandOver(Attention.DISPUTED)
    return Hold() if paused else step


def in_doubt(attempts: Sequence[AttemptState]) -> bool:
    """Whether any of these attempts may have been executed without our knowing."""
    return any(attempt.reading.outcome is Outcome.INDETERMINATE for attempt in attempts)


def _first_send(
    *, created_at: datetime, contract: Contract, policy: KeyWindowPolicy, now: datetime
) -> NextStep:
    closes_at = window_closes_at(first_send=created_at, contract=contract, policy=policy)
    if now >= (closes_at or created_at + policy.send_time):
        return MarkUnknown(UnknownReason.DEADLINE_PASSED)
    return Send(now)


def _what_the_answers_say(attempts: Sequence[AttemptState]) -> NextStep | None:
    """The step that the answers themselves dictate, or None when they leave it open."""
    for attempt in attempts:
        reading = attempt.reading
        if reading.outcome is Outcome.ACCEPTED and reading.refund is not None:
            fact = fact_of(reading.refund.status)
            if fact is None:
                return MarkUnknown(UnknownReason.UNREADABLE_ANSWER)
            return Settle(fact, reading.refund)
        if reading.doubt is Doubt.FROZEN:
            return MarkUnknown(UnknownReason.SERVER_ERROR)
        if reading.doubt is Doubt.UNSAFE_REFUSAL:
            return MarkUnknown(UnknownReason.UNSAFE_REFUSAL)
        if reading.outcome is Outcome.REFUSED:
            return Settle(Fact.SEND_REFUSED)
    return None


def _send_again(
    attempts: Sequence[AttemptState],
    *,
    created_at: datetime,
    contract: Contract,
    budget: Budget,
    policy: KeyWindowPolicy,
    configuration_blocked: bool,
    now: datetime,
    jitter: float,
    promised_until: datetime | None,
) -> NextStep:
    doubtful = in_doubt(attempts)
    closes_at = window_closes_at(
        first_send=attempts[0].started_at,
        contract=contract,
        policy=policy,
        promised_until=promised_until,
    )
    last = attempts[-1]
    if doubtful and not contract.replay_is_safe:
        cut_off = last.reading.doubt is Doubt.INTERRUPTED
        return MarkUnknown(
            UnknownReason.INTERRUPTED if cut_off else UnknownReason.KEY_RETENTION_UNCLEAR
        )
    if len(attempts) >= budget.attempts_per_operation:
        return MarkUnknown(_spent_reason(last.reading.doubt))
    if doubtful and last.should_retry is False:
        return MarkUnknown(_spent_reason(last.reading.doubt))
    # Without a window nothing is in doubt here, and yet a refund is not sent whole days later.
    ends_at = closes_at or created_at + policy.send_time
    too_late = MarkUnknown(
        UnknownReason.KEY_WINDOW_CLOSED if closes_at else UnknownReason.DEADLINE_PASSED
    )
    if configuration_blocked:
        if now >= ends_at:
            return too_late
        return HandOver(Attention.CONFIGURATION)
    wait = backoff_s(
        attempts=len(attempts),
        base_s=budget.backoff_base_s,
        jitter=jitter,
        at_least_s=last.retry_after_s or 0.0,
    )
    at = max(now, last.finished_at + timedelta(seconds=wait))
    if at >= ends_at:
        return too_late
    return Send(at)


def _spent_reason(doubt: Doubt) -> UnknownReason:
    if doubt is Doubt.INTERRUPTED:
        return UnknownReason.INTERRUPTED
    if doubt is Doubt.UNREADABLE:
        return UnknownReason.UNREADABLE_ANSWER
    return UnknownReason.BUDGET_SPENT
