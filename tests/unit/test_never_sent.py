"""What is never sent, in whatever history: after the window, after a frozen answer, too often."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from operations.domain.answers import Answer, AnswerKind
from operations.domain.budgets import Budget
from operations.domain.classify import Classification, Doubt, Outcome, classify
from operations.domain.contract import Contract
from operations.domain.key_window import KeyWindowPolicy, window_closes_at
from operations.domain.next_step import AttemptState, NextStep, Send, decide, in_doubt

from .contracts import STRIPE_LIKE, TERMS, refund

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
POLICY = KeyWindowPolicy(window_s=86_400, margin_s=900)
BUDGET = Budget(
    attempts_per_call=3,
    attempts_per_operation=6,
    call_deadline_s=30.0,
    backoff_base_s=0.5,
    send_s=13.0,
)

answers = st.one_of(
    st.builds(
        Answer,
        kind=st.sampled_from(AnswerKind),
        http_status=st.sampled_from([None, 200, 302, 400, 401, 402, 403, 404, 409, 424, 429])
        | st.sampled_from([500, 502, 503, 504, 999]),
        error_type=st.sampled_from(["", "invalid_request_error", "idempotency_error", "x"]),
        error_code=st.sampled_from(["", "charge_already_refunded", "resource_missing", "x"]),
        replayed=st.booleans(),
        should_retry=st.sampled_from([None, True, False]),
        retry_after_s=st.none() | st.floats(0, 3_600),
    ),
    st.builds(
        Answer,
        kind=st.just(AnswerKind.RESPONSE),
        http_status=st.just(200),
        refund=st.sampled_from([refund(), refund(status="pending"), refund(status="new")]),
    ),
)
gaps = st.floats(0, 40_000)
contracts = st.sampled_from(
    [
        STRIPE_LIKE,
        replace(STRIPE_LIKE, key_window_s=None),
        replace(STRIPE_LIKE, key_window_s=3_600),
        replace(STRIPE_LIKE, frozen_statuses=frozenset()),
    ]
)


def history(
    contract: Contract, said: Sequence[tuple[float, Answer]]
) -> tuple[list[AttemptState], datetime]:
    """Attempts with these answers, each read as it comes; and the time of the last one's end."""
    attempts: list[AttemptState] = []
    now = START
    for gap, answer in said:
        started, now = now, now + timedelta(seconds=gap)
        reading = classify(
            answer, terms=TERMS, earlier_in_doubt=in_doubt(attempts), contract=contract
        )
        attempts.append(
            AttemptState(
                started_at=started,
                finished_at=now,
                reading=reading,
                retry_after_s=answer.retry_after_s,
                should_retry=answer.should_retry,
            )
        )
    return attempts, now


def next_step(
    contract: Contract,
    attempts: Sequence[AttemptState],
    *,
    now: datetime,
    jitter: float,
    blocked: bool = False,
    promised_until: datetime | None = None,
) -> NextStep:
    return decide(
        created_at=START,
        attempts=attempts,
        contract=contract,
        budget=BUDGET,
        policy=POLICY,
        configuration_blocked=blocked,
        now=now,
        jitter=jitter,
        promised_until=promised_until,
    )


@given(
    contract=contracts,
    said=st.lists(st.tuples(gaps, answers), max_size=8),
    jitter=st.floats(0, 1),
    blocked=st.booleans(),
    promised=st.none() | st.floats(0, 200_000),
)
def test_no_send_begins_after_the_window_or_above_the_budget_or_in_hopeless_doubt(
    contract: Contract,
    said: list[tuple[float, Answer]],
    jitter: float,
    blocked: bool,
    promised: float | None,
) -> None:
    attempts, now = history(contract, said)
    promised_until = None if promised is None else START + timedelta(seconds=promised)

    step = next_step(
        contract,
        attempts,
        now=now,
        jitter=jitter,
        blocked=blocked,
        promised_until=promised_until,
    )

    if not isinstance(step, Send):
        return
    assert step.at >= now
    assert len(attempts) < BUDGET.attempts_per_operation
    closes_at = window_closes_at(first_send=START, contract=contract, policy=POLICY)
    if closes_at is None:
        assert not in_doubt(attempts)
    else:
        assert step.at < closes_at
        if attempts and promised_until is not None:
            assert step.at < promised_until
    assert not (attempts and blocked)
    for attempt in attempts:
        assert attempt.reading.doubt not in (Doubt.FROZEN, Doubt.UNSAFE_REFUSAL)
        assert attempt.reading.outcome in (Outcome.INDETERMINATE, Outcome.NOT_EXECUTED)


@given(
    before=st.lists(st.tuples(gaps, answers), max_size=3),
    after=st.lists(st.tuples(gaps, answers), max_size=3),
    jitter=st.floats(0, 1),
)
def test_nothing_is_sent_once_an_answer_was_frozen(
    before: list[tuple[float, Answer]], after: list[tuple[float, Answer]], jitter: float
) -> None:
    frozen = Answer(kind=AnswerKind.RESPONSE, http_status=500, error_type="api_error")
    attempts, now = history(STRIPE_LIKE, [*before, (0.0, frozen), *after])

    assert not isinstance(next_step(STRIPE_LIKE, attempts, now=now, jitter=jitter), Send)


@given(answer=answers, doubt=st.booleans())
def test_doubt_of_an_earlier_send_is_never_ended_by_a_refusal_that_is_no_replay(
    answer: Answer, doubt: bool
) -> None:
    reading: Classification = classify(
        answer, terms=TERMS, earlier_in_doubt=doubt, contract=STRIPE_LIKE
    )

    if reading.outcome is Outcome.REFUSED and doubt and not answer.replayed:
        assert reading.doubt is Doubt.UNSAFE_REFUSAL
    if reading.outcome is Outcome.ACCEPTED:
        assert answer.refund is not None
