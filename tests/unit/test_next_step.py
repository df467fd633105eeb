"""What happens next with an open operation, at the edges of every rule."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from operations.domain.budgets import Budget
from operations.domain.classify import Classification, Doubt, Outcome
from operations.domain.contract import Contract, KeyLocation, SavedAnswers
from operations.domain.key_window import KeyWindowPolicy
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
from operations.domain.statuses import Attention, Fact, UnknownReason

from .contracts import STRIPE_LIKE, refund

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WINDOW_S = 86_400 - 900
BUDGET = Budget(
    attempts_per_call=3,
    attempts_per_operation=6,
    call_deadline_s=30.0,
    backoff_base_s=0.5,
    send_s=13.0,
)
LOST = Classification(outcome=Outcome.INDETERMINATE)
NOT_RUN = Classification(outcome=Outcome.NOT_EXECUTED)
NO_KEY = replace(STRIPE_LIKE, key_location=KeyLocation.NONE)
UNSAFE = {
    "no key": NO_KEY,
    "window unknown": replace(STRIPE_LIKE, key_window_s=None),
    "successes saved only": replace(STRIPE_LIKE, saved_answers=SavedAnswers.SUCCESS_ONLY),
    "nothing saved": replace(STRIPE_LIKE, saved_answers=SavedAnswers.NOTHING),
}


def _at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def _tried(reading: Classification, *, at: float = 0, **fields: Any) -> AttemptState:
    return AttemptState(started_at=_at(at), finished_at=_at(at), reading=reading, **fields)


def _decide(
    attempts: Sequence[AttemptState],
    *,
    now: float = 0,
    contract: Contract = STRIPE_LIKE,
    jitter: float = 0.0,
    blocked: bool = False,
    **more: Any,
) -> NextStep:
    return decide(
        created_at=START,
        attempts=attempts,
        contract=contract,
        budget=BUDGET,
        policy=KeyWindowPolicy(window_s=86_400, margin_s=900),
        configuration_blocked=blocked,
        now=_at(now),
        jitter=jitter,
        **more,
    )


def test_an_operation_that_was_never_sent_is_sent_at_once() -> None:
    assert _decide([]) == Send(START)


@pytest.mark.parametrize("contract", UNSAFE.values(), ids=UNSAFE)
def test_the_first_send_needs_no_key(contract: Contract) -> None:
    assert _decide([], contract=contract) == Send(START)


def test_an_operation_that_waited_a_whole_window_is_not_sent_any_more() -> None:
    assert _decide([], now=WINDOW_S - 1) == Send(_at(WINDOW_S - 1))
    assert _decide([], now=WINDOW_S) == MarkUnknown(UnknownReason.DEADLINE_PASSED)


@pytest.mark.parametrize("reading", [LOST, NOT_RUN])
def test_the_window_closes_to_the_second(reading: Classification) -> None:
    assert _decide([_tried(reading)], now=WINDOW_S - 1) == Send(_at(WINDOW_S - 1))
    assert _decide([_tried(reading)], now=WINDOW_S) == MarkUnknown(UnknownReason.KEY_WINDOW_CLOSED)


def test_a_pause_that_ends_after_the_window_is_not_waited_for() -> None:
    last = _tried(LOST, at=WINDOW_S - 10, retry_after_s=10.0)
    closed = MarkUnknown(UnknownReason.KEY_WINDOW_CLOSED)
    assert _decide([_tried(LOST), last], now=WINDOW_S - 10) == closed
    sooner = replace(last, retry_after_s=9.0)
    assert _decide([_tried(LOST), sooner], now=WINDOW_S - 10) == Send(_at(WINDOW_S - 1))


def test_the_window_runs_from_the_first_send_whatever_came_later() -> None:
    attempts = [_tried(NOT_RUN), _tried(LOST, at=WINDOW_S - 1)]
    assert _decide(attempts, now=WINDOW_S) == MarkUnknown(UnknownReason.KEY_WINDOW_CLOSED)


def test_a_promised_window_is_not_stretched_by_a_longer_one() -> None:
    closed = MarkUnknown(UnknownReason.KEY_WINDOW_CLOSED)
    promise = _at(600)
    assert _decide([_tried(LOST)], now=599, promised_until=promise) == Send(_at(599))
    assert _decide([_tried(LOST)], now=600, promised_until=promise) == closed


@pytest.mark.parametrize("contract", UNSAFE.values(), ids=UNSAFE)
def test_a_send_in_doubt_is_not_repeated_when_the_key_promises_nothing(contract: Contract) -> None:
    unclear = MarkUnknown(UnknownReason.KEY_RETENTION_UNCLEAR)
    assert _decide([_tried(LOST)], contract=contract) == unclear
    assert _decide([_tried(LOST), _tried(NOT_RUN)], contract=contract) == unclear


@pytest.mark.parametrize("contract", UNSAFE.values(), ids=UNSAFE)
def test_an_interrupted_send_that_cannot_be_repeated_is_called_so(contract: Contract) -> None:
    cut = Classification(outcome=Outcome.INDETERMINATE, doubt=Doubt.INTERRUPTED)
    assert _decide([_tried(cut)], contract=contract) == MarkUnknown(UnknownReason.INTERRUPTED)


@pytest.mark.parametrize("contract", UNSAFE.values(), ids=UNSAFE)
def test_a_send_that_was_not_executed_can_be_repeated_without_a_key(contract: Contract) -> None:
    assert _decide([_tried(NOT_RUN)], now=5, contract=contract) == Send(_at(5))


@pytest.mark.parametrize("reading", [LOST, NOT_RUN])
def test_an_operation_has_its_attempts_and_no_more(reading: Classification) -> None:
    assert isinstance(_decide([_tried(reading)] * 5), Send)
    assert _decide([_tried(reading)] * 6) == MarkUnknown(UnknownReason.BUDGET_SPENT)


@pytest.mark.parametrize(
    ("doubt", "reason"),
    [
        (Doubt.NONE, UnknownReason.BUDGET_SPENT),
        (Doubt.INTERRUPTED, UnknownReason.INTERRUPTED),
        (Doubt.UNREADABLE, UnknownReason.UNREADABLE_ANSWER),
    ],
)
def test_the_last_attempt_says_why_nothing_more_is_sent(
    doubt: Doubt, reason: UnknownReason
) -> None:
    last = _tried(Classification(outcome=Outcome.INDETERMINATE, doubt=doubt))
    assert _decide([*[_tried(LOST)] * 5, last]) == MarkUnknown(reason)
    told_not_to = replace(last, should_retry=False)
    assert _decide([told_not_to]) == MarkUnknown(reason)


def test_the_providers_word_not_to_repeat_counts_only_in_doubt() -> None:
    assert _decide([_tried(NOT_RUN, should_retry=False)]) == Send(START)
    for word in (True, None):
        assert _decide([_tried(LOST, should_retry=word)]) == Send(START)


@pytest.mark.parametrize(
    ("retry_after_s", "jitter", "pause"),
    [(None, 0.0, 0), (None, 1.0, 0.5), (7.0, 0.0, 7), (0.0, 1.0, 0.5), (0.1, 1.0, 0.5)],
)
def test_the_pause_is_the_longer_of_ours_and_theirs(
    retry_after_s: float | None, jitter: float, pause: float
) -> None:
    last = _tried(NOT_RUN, retry_after_s=retry_after_s)
    assert _decide([last], jitter=jitter) == Send(_at(pause))


def test_a_pause_runs_from_the_last_answer_and_never_ends_in_the_past() -> None:
    attempts = [_tried(LOST), _tried(LOST, at=100, retry_after_s=20.0)]
    assert _decide(attempts, now=105) == Send(_at(120))
    assert _decide(attempts, now=500) == Send(_at(500))


@pytest.mark.parametrize("reading", [LOST, NOT_RUN])
def test_a_wrong_configuration_is_handed_over_until_the_window_closes(
    reading: Classification,
) -> None:
    handed = HandOver(Attention.CONFIGURATION)
    assert _decide([_tried(reading)], blocked=True, now=WINDOW_S - 1) == handed
    closed = MarkUnknown(UnknownReason.KEY_WINDOW_CLOSED)
    assert _decide([_tried(reading)], blocked=True, now=WINDOW_S) == closed
    assert _decide([_tried(reading)], now=1) == Send(_at(1))


def test_a_pause_of_the_account_holds_sends_and_nothing_else() -> None:
    assert _decide([], paused=True) == Hold()
    assert _decide([_tried(LOST)], paused=True) == Hold()
    closed = MarkUnknown(UnknownReason.KEY_WINDOW_CLOSED)
    assert _decide([_tried(LOST)], paused=True, now=WINDOW_S) == closed
    refused = Classification(outcome=Outcome.REFUSED)
    assert _decide([_tried(refused)], paused=True) == Settle(Fact.SEND_REFUSED)


@pytest.mark.parametrize(
    ("status", "fact"),
    [
        ("pending", Fact.PROVIDER_PENDING),
        ("requires_action", Fact.PROVIDER_PENDING),
        ("succeeded", Fact.PROVIDER_SUCCEEDED),
        ("failed", Fact.PROVIDER_FAILED),
        ("canceled", Fact.PROVIDER_FAILED),
    ],
)
def test_an_accepted_answer_settles_by_the_refunds_status(status: str, fact: Fact) -> None:
    got = refund(status=status)
    taken = _tried(Classification(outcome=Outcome.ACCEPTED, refund=got))
    assert _decide([_tried(LOST), taken], now=10 * WINDOW_S) == Settle(fact, got)


def test_a_status_that_nobody_knows_settles_nothing() -> None:
    taken = Classification(outcome=Outcome.ACCEPTED, refund=refund(status="new"))
    assert _decide([_tried(taken)]) == MarkUnknown(UnknownReason.UNREADABLE_ANSWER)


@pytest.mark.parametrize(
    ("reading", "step"),
    [
        (
            Classification(outcome=Outcome.INDETERMINATE, doubt=Doubt.FROZEN),
            MarkUnknown(UnknownReason.SERVER_ERROR),
        ),
        (
            Classification(outcome=Outcome.REFUSED, doubt=Doubt.UNSAFE_REFUSAL),
            MarkUnknown(UnknownReason.UNSAFE_REFUSAL),
        ),
        (Classification(outcome=Outcome.REFUSED), Settle(Fact.SEND_REFUSED)),
    ],
)
def test_an_answer_that_decides_does_so_at_once(reading: Classification, step: NextStep) -> None:
    for attempts in ([_tried(reading)], [_tried(NOT_RUN), _tried(reading)]):
        assert _decide(attempts) == step
        assert _decide(attempts, contract=NO_KEY, blocked=True, now=10 * WINDOW_S) == step


def test_doubt_stays_whatever_comes_after() -> None:
    assert in_doubt([_tried(LOST), _tried(NOT_RUN)])
    assert not in_doubt([_tried(NOT_RUN)])
    assert not in_doubt([])
