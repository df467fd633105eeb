"""The table of decisions: what is known, the next step, and what to avoid.

Every row is put through the real rules; nothing here says what they answer. What a row is about is
written down, what follows from it is not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import assert_never

from operations.domain.answers import Answer, AnswerKind, RefundFacts
from operations.domain.budgets import Budget
from operations.domain.classify import Classification, classify
from operations.domain.closure import Absence, absence_is_fresh
from operations.domain.contract import Contract
from operations.domain.key_window import KeyWindowPolicy
from operations.domain.matching import RefundTerms
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
from operations.domain.statuses import Attention, Status, UnknownReason, transition

_START = datetime(2026, 1, 1, tzinfo=UTC)
_TERMS = RefundTerms(
    operation_id="0195511c-0000-7000-8000-000000000001",
    environment="production",
    amount=3_800,
    currency="usd",
    charge="ch_1",
    payment_intent="",
)
_REFUND = RefundFacts(id="re_1", status="succeeded", amount=3_800, currency="usd", charge="ch_1")
_LOST = Answer(kind=AnswerKind.CONNECTION_LOST)
_TURNED_AWAY = Answer(kind=AnswerKind.RESPONSE, http_status=429, error_type="invalid_request_error")


def _answer(status: int, error_type: str = "invalid_request_error", code: str = "") -> Answer:
    return Answer(
        kind=AnswerKind.RESPONSE, http_status=status, error_type=error_type, error_code=code
    )


def _refund(**changes: str | int) -> Answer:
    refund = replace(_REFUND, **changes)  # type: ignore[arg-type]
    return Answer(kind=AnswerKind.RESPONSE, http_status=200, refund=refund)


#: What one send brought back, in the order of the documentation.
_ANSWERS: Mapping[str, Answer] = {
    "no connection was made": Answer(kind=AnswerKind.NOT_SENT),
    "the connection broke, timed out or was cut": _LOST,
    "our process died during the send": Answer(kind=AnswerKind.INTERRUPTED),
    "200, the refund, `succeeded`": _refund(),
    "200, the refund, `pending`": _refund(status="pending"),
    "200, the refund, `failed`": _refund(status="failed"),
    "200, the refund, in a status nobody knows": _refund(status="on_hold"),
    "200, a refund of another amount": _refund(amount=1),
    "200 that is no refund, a redirect": Answer(kind=AnswerKind.UNREADABLE, http_status=200),
    "400, 402 or 404, a refusal": _answer(400),
    "a refusal, marked as a replay": replace(_answer(400), replayed=True),
    "400 `charge_already_refunded`": _answer(400, code="charge_already_refunded"),
    "400 `idempotency_error`": _answer(400, "idempotency_error"),
    "404 `resource_missing`": _answer(404, code="resource_missing"),
    "401 or 403": _answer(401),
    "409, the key is in use": _answer(409, "idempotency_error"),
    "429": _TURNED_AWAY,
    "500": _answer(500, "api_error"),
    "502, 503, 504, a page of somebody between": _answer(503, ""),
    "503 that says not to try again": replace(_answer(503, "api_error"), should_retry=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """The numbers that the rules are asked with."""

    budget: Budget
    policy: KeyWindowPolicy

    def readings(self, contract: Contract, answers: Sequence[Answer]) -> list[Classification]:
        """Each answer read with those before it in mind."""
        attempts: list[AttemptState] = []
        for answer in answers:
            reading = classify(
                answer, terms=_TERMS, earlier_in_doubt=in_doubt(attempts), contract=contract
            )
            attempts.append(_attempt(reading, answer))
        return [attempt.reading for attempt in attempts]

    def step(
        self,
        contract: Contract,
        answers: Sequence[Answer],
        *,
        after_s: float = 0,
        paused: bool = False,
    ) -> NextStep:
        """What the rules decide after these answers, so many seconds after the first send."""
        readings = self.readings(contract, answers)
        flagged = any(reading.attention is Attention.CONFIGURATION for reading in readings)
        return decide(
            created_at=_START,
            attempts=[_attempt(*pair) for pair in zip(readings, answers, strict=True)],
            contract=contract,
            budget=self.budget,
            policy=self.policy,
            configuration_blocked=flagged,
            now=_START + timedelta(seconds=after_s),
            jitter=0.5,
            paused=paused,
        )


def _attempt(reading: Classification, answer: Answer) -> AttemptState:
    return AttemptState(
        started_at=_START,
        finished_at=_START,
        reading=reading,
        retry_after_s=answer.retry_after_s,
        should_retry=answer.should_retry,
    )


def decision_table(
    *, contracts: Mapping[str, Contract], budget: Budget, policy: KeyWindowPolicy
) -> str:
    """Three tables in Markdown; the first contract is the one of the first two."""
    rules = _Rules(budget=budget, policy=policy)
    first = next(iter(contracts.values()))
    return "\n\n".join(
        (
            f"### One answer, under the contract of `{first.provider}`",
            _answers(rules, first),
            "### Time and budgets",
            _limits(rules, first),
            "### The same under other contracts",
            _contracts(rules, contracts.values()),
        )
    )


def _answers(rules: _Rules, contract: Contract) -> str:
    rows = []
    for known, answer in _ANSWERS.items():
        first = rules.step(contract, [answer])
        again = rules.step(contract, [_LOST, answer])
        reading = rules.readings(contract, [answer])[0]
        rows.append((known, _read_as(reading), _in_words(first), _in_words(again), _avoid(first)))
    head = (
        "what came back",
        "read as",
        "next, after the first send",
        "next, when an earlier answer was lost",
        "what to avoid",
    )
    return _markdown(head, rows)


def _limits(rules: _Rules, contract: Contract) -> str:
    most = rules.budget.attempts_per_operation
    over = rules.policy.send_time.total_seconds()
    situations: Mapping[str, NextStep] = {
        "never sent": rules.step(contract, []),
        "never sent, and sending is paused": rules.step(contract, [], paused=True),
        "never sent for a whole key window": rules.step(contract, [], after_s=over),
        "an answer was lost, and sending is paused": rules.step(contract, [_LOST], paused=True),
        f"{most} answers were lost": rules.step(contract, [_LOST] * most),
        f"turned away {most} times": rules.step(contract, [_TURNED_AWAY] * most),
        "an answer was lost, and the key window is over": rules.step(
            contract, [_LOST], after_s=over
        ),
        "the pause that was asked for ends after the key window": rules.step(
            contract, [replace(_TURNED_AWAY, retry_after_s=over)]
        ),
    }
    rows = [(known, _in_words(step), _avoid(step)) for known, step in situations.items()]
    return _markdown(("what is known", "next step", "what to avoid"), rows)


def _contracts(rules: _Rules, contracts: Iterable[Contract]) -> str:
    rows = []
    for contract in contracts:
        absent = Absence(looked_at=_START, complete=True, explained=True, seconds_after_send=86_400)
        fresh = absence_is_fresh(
            absent, now=_START, conclusive_after_s=contract.lookup_conclusive_after_s
        )
        rows.append(
            (
                f"`{contract.provider}`",
                *(
                    _in_words(rules.step(contract, [answer]))
                    for answer in (
                        _LOST,
                        Answer(kind=AnswerKind.INTERRUPTED),
                        _answer(500, "api_error"),
                        _answer(409, "idempotency_error"),
                        _TURNED_AWAY,
                    )
                ),
                "one person may close it as failed" if fresh else "a second person is needed",
            )
        )
    head = (
        "contract",
        "an answer was lost",
        "our process died",
        "500",
        "409",
        "429",
        "complete list, no refund",
    )
    return _markdown(head, rows)


def _read_as(reading: Classification) -> str:
    extra = " ".join(f"`{word}`" for word in (reading.doubt, reading.attention) if word)
    return f"{reading.outcome.replace('_', ' ')} {extra}".strip()


def _in_words(step: NextStep) -> str:
    match step:
        case Send(at):
            return "send, same key" if at <= _START else "send after a pause, same key"
        case Settle(fact):
            return f"`{transition(Status.OPEN, fact).to}`"
        case MarkUnknown(reason):
            return f"`unknown`, `{reason}`: look up, then a person"
        case HandOver(attention):
            return f"stop; a person clears `{attention}`"
        case Hold():
            return "wait until people resume it"
        case _:
            assert_never(step)


def _avoid(step: NextStep) -> str:
    match step:
        case Send():
            return "a new key: it could be a second refund"
        case Settle(fact):
            return _AVOID_WHEN_SETTLED[transition(Status.OPEN, fact).to]
        case MarkUnknown(reason):
            return _AVOID_WHEN_UNKNOWN[reason]
        case HandOver():
            return "trying on: the same key and account are refused again"
        case Hold():
            return "a refund by another way: this one goes out when it is resumed"
        case _:
            assert_never(step)


_AVOID_WHEN_SETTLED: Mapping[Status, str] = {
    Status.PROCESSING: "sending again: the provider has it; its end comes by itself",
    Status.SUCCEEDED: "asking again under another reference: that is a second refund",
    Status.FAILED: "sending it again: a new try is a new operation, linked to this one",
}
_AVOID_WHEN_UNKNOWN: Mapping[UnknownReason, str] = {
    UnknownReason.SERVER_ERROR: "the same key (it repeats the 500) and a new one (a second refund)",
    UnknownReason.BUDGET_SPENT: "raising the budget to send on: look first",
    UnknownReason.DEADLINE_PASSED: "sending a wish that nobody may hold any more",
    UnknownReason.KEY_WINDOW_CLOSED: "any send: the key may be forgotten and would execute again",
    UnknownReason.KEY_RETENTION_UNCLEAR: "any send: nothing says that it would not execute again",
    UnknownReason.INTERRUPTED: "any send: the one that was cut off may have been executed",
    UnknownReason.UNSAFE_REFUSAL: "taking the refusal for the answer to an earlier send",
    UnknownReason.UNREADABLE_ANSWER: "believing half of an answer",
    UnknownReason.REOPENED: "any send: the key may be forgotten; look up and close it again",
}


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
