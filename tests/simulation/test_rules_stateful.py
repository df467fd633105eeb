"""The pure rules, walked at random: one open operation, a provider that remembers a key, and time.

Hypothesis chooses what each send meets, what is reported, and how long anybody waits; it then
looks for the shortest walk that breaks a promise.
"""

from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from operations.domain.answers import Answer, AnswerKind, RefundFacts
from operations.domain.budgets import Budget
from operations.domain.classify import Doubt, Outcome, classify
from operations.domain.key_window import KeyWindowPolicy
from operations.domain.matching import RefundTerms
from operations.domain.next_step import (
    AttemptState,
    MarkUnknown,
    NextStep,
    Send,
    Settle,
    decide,
    in_doubt,
)
from operations.domain.refund_state import RefundStatus, fact_of, furthest
from operations.domain.statuses import SETTLED, Fact, Status, transition
from operations.providers.stripe import STRIPE_CONTRACT
from tests.simulation.fates import refusal

_START = datetime(2026, 11, 30, tzinfo=UTC)
_KEPT = timedelta(seconds=STRIPE_CONTRACT.key_window_s or 0)
_BUDGET = Budget(
    attempts_per_call=3,
    attempts_per_operation=6,
    call_deadline_s=30.0,
    backoff_base_s=0.5,
    send_s=13.0,
)
_POLICY = KeyWindowPolicy(window_s=86_400, margin_s=900)
_TERMS = RefundTerms(
    operation_id="0193a000-0000-7000-8000-000000000000",
    environment="walk",
    amount=2_500,
    currency="usd",
    charge="ch_1",
    payment_intent="pi_1",
)
_REFUND = RefundFacts(
    id="re_1", status="succeeded", amount=2_500, currency="usd", charge="ch_1", created=1
)
_MADE = Answer(kind=AnswerKind.RESPONSE, http_status=200, body={}, refund=_REFUND)
_IN_FRONT = (
    Answer(kind=AnswerKind.NOT_SENT),
    Answer(kind=AnswerKind.CONNECTION_LOST),
    refusal(401, "invalid_request_error", ""),
    refusal(409, "idempotency_error", "idempotency_key_in_use"),
    refusal(429, "rate_limit_error", "rate_limit", retry_after_s=2.0),
    refusal(502, "", ""),
)
_REFUSED_IN_FRONT = (
    refusal(400, "invalid_request_error", "parameter_invalid"),
    refusal(400, "idempotency_error", ""),
)
_EXECUTED = (_MADE, refusal(402, "card_error", "declined"), refusal(500, "api_error", ""))
_UNSEEN = (
    AnswerKind.CONNECTION_LOST,
    AnswerKind.INTERRUPTED,
    AnswerKind.UNREADABLE,
)


class OneOperation(RuleBasedStateMachine):
    """What the services do with the rules, without the services."""

    def __init__(self) -> None:
        super().__init__()
        self.now = _START
        self.status = Status.OPEN
        self.attempts: list[AttemptState] = []
        self.sent_at: list[datetime] = []
        self.saved: Answer | None = None
        self.saved_at = _START
        self.refunds = 0
        self.known = ""

    def _next(self) -> NextStep:
        return decide(
            created_at=_START,
            attempts=self.attempts,
            contract=STRIPE_CONTRACT,
            budget=_BUDGET,
            policy=_POLICY,
            configuration_blocked=False,
            now=self.now,
            jitter=0.5,
        )

    def _learn(self, answer: Answer, began: datetime) -> None:
        """Keep an answer and carry out what the rule makes of it."""
        reading = classify(
            answer,
            terms=_TERMS,
            earlier_in_doubt=in_doubt(self.attempts),
            contract=STRIPE_CONTRACT,
        )
        self.attempts.append(
            AttemptState(
                started_at=began,
                finished_at=self.now,
                reading=reading,
                retry_after_s=answer.retry_after_s,
                should_retry=answer.should_retry,
            )
        )
        if self.status is not Status.OPEN:
            return
        match self._next():
            case Settle(fact, refund):
                self._take(fact)
                self.known = refund.status if refund else self.known
            case MarkUnknown():
                self._take(Fact.LEFT_UNDECIDED)
            case _:
                pass

    def _take(self, fact: Fact) -> None:
        self.status = transition(self.status, fact).to

    def _begin(self) -> datetime | None:
        step = self._next()
        if not isinstance(step, Send):
            self.status = Status.UNKNOWN if isinstance(step, MarkUnknown) else self.status
            return None
        self.now = max(self.now, step.at)
        self.sent_at.append(self.now)
        return self.now

    @precondition(lambda self: self.status is Status.OPEN)
    @rule(answer=st.sampled_from(_IN_FRONT))
    def send_that_is_turned_away(self, answer: Answer) -> None:
        """Something before the idempotency layer answers, or nobody does."""
        began = self._begin()
        if began is not None:
            self.now += timedelta(seconds=1)
            self._learn(answer, began)

    @precondition(lambda self: self.status is Status.OPEN)
    @rule(answer=st.sampled_from(_REFUSED_IN_FRONT))
    def send_that_is_refused_in_front(self, answer: Answer) -> None:
        """A refusal that is not saved, and so says nothing of an earlier send."""
        self.send_that_is_turned_away(answer)

    @precondition(lambda self: self.status is Status.OPEN)
    @rule(first=st.sampled_from(_EXECUTED), unseen=st.none() | st.sampled_from(_UNSEEN))
    def send_that_arrives(self, first: Answer, unseen: AnswerKind | None) -> None:
        """It is executed, or answered from what is saved; the answer may not reach us."""
        began = self._begin()
        if began is None:
            return
        if self.saved is not None and self.now < self.saved_at + _KEPT:
            answer = Answer(
                kind=self.saved.kind,
                http_status=self.saved.http_status,
                body=self.saved.body,
                refund=self.saved.refund,
                error_type=self.saved.error_type,
                error_code=self.saved.error_code,
                replayed=True,
            )
        else:
            self.saved, self.saved_at, answer = first, self.now, first
            # A 500 may hide a refund that was made.
            self.refunds += first.http_status in (200, 500)
        self.now += timedelta(seconds=2)
        self._learn(Answer(kind=unseen) if unseen else answer, began)

    @precondition(lambda self: self.refunds > 0)
    @rule(status=st.sampled_from(sorted(RefundStatus)) | st.just("something_new"))
    def report(self, status: str) -> None:
        """A webhook or a look-up shows the refund, in any state and any order."""
        self.known = furthest(self.known, status)
        fact = fact_of(self.known)
        if fact is not None:
            self._take(fact)

    @rule(seconds=st.sampled_from((1, 3_600, 86_000)))
    def wait(self, seconds: int) -> None:
        """Nothing happens for a while."""
        self.now += timedelta(seconds=seconds)

    @invariant()
    def no_send_after_the_window(self) -> None:
        """The last send began while the provider still knew the key."""
        if self.sent_at:
            assert self.sent_at[-1] - self.sent_at[0] < _KEPT - timedelta(seconds=800)

    @invariant()
    def at_most_one_refund(self) -> None:
        """The provider made at most one."""
        assert self.refunds <= 1

    @invariant()
    def sends_are_bounded(self) -> None:
        """No more attempts than the budget has."""
        assert len(self.attempts) <= _BUDGET.attempts_per_operation

    @invariant()
    def nothing_follows_a_decisive_answer(self) -> None:
        """A refund, a saved error or a refusal is the last attempt."""
        for attempt in self.attempts[:-1]:
            assert attempt.reading.outcome not in (Outcome.ACCEPTED, Outcome.REFUSED)
            assert attempt.reading.doubt is not Doubt.FROZEN

    @invariant()
    def failed_is_true(self) -> None:
        """Failed only if the provider made nothing, or said that the refund is dead."""
        if self.status is Status.FAILED:
            assert not self.refunds or self.known in ("failed", "canceled")

    @invariant()
    def succeeded_is_true(self) -> None:
        """Succeeded only if the provider made the refund."""
        if self.status is Status.SUCCEEDED:
            assert self.refunds == 1
            assert self.known == "succeeded"

    @invariant()
    def unknown_is_never_sent(self) -> None:
        """The rule sends only what is open; what has settled is settled by the answers too."""
        if self.status in SETTLED and self.attempts and not self.known:
            assert not isinstance(self._next(), Send)


TestRules = OneOperation.TestCase
TestRules.settings = settings(max_examples=300, stateful_step_count=15, deadline=None)
