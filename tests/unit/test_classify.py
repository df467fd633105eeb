"""The classification table, line by line, on a first send and on a resend."""

from typing import Any

import pytest

from operations.domain.answers import Answer, AnswerKind
from operations.domain.classify import Classification, Doubt, Outcome, classify
from operations.domain.statuses import Attention

from .contracts import STRIPE_LIKE, TERMS, refund, response

NOT_EXECUTED, INDETERMINATE = Outcome.NOT_EXECUTED, Outcome.INDETERMINATE
REFUSED, ACCEPTED = Outcome.REFUSED, Outcome.ACCEPTED


def _read(answer: Answer, *, resend: bool) -> Classification:
    return classify(answer, terms=TERMS, earlier_in_doubt=resend, contract=STRIPE_LIKE)


def _refusal(http_status: int, **fields: Any) -> Answer:
    return response(http_status, **{"error_type": "invalid_request_error"} | fields)


#: line: the answer, what it is, and what is special about it.
SAME_ON_A_RESEND: dict[str, tuple[Answer, Outcome, Doubt, Attention | None]] = {
    "refused connection": (Answer(kind=AnswerKind.NOT_SENT), NOT_EXECUTED, Doubt.NONE, None),
    "reset, timeout, truncated": (
        Answer(kind=AnswerKind.CONNECTION_LOST),
        INDETERMINATE,
        Doubt.NONE,
        None,
    ),
    "2xx that is no JSON": (
        Answer(kind=AnswerKind.UNREADABLE, http_status=200),
        INDETERMINATE,
        Doubt.UNREADABLE,
        None,
    ),
    "2xx without a refund": (response(200), INDETERMINATE, Doubt.UNREADABLE, None),
    "a redirect": (response(302), INDETERMINATE, Doubt.UNREADABLE, None),
    "the sender went away": (
        Answer(kind=AnswerKind.INTERRUPTED),
        INDETERMINATE,
        Doubt.INTERRUPTED,
        None,
    ),
    "400 idempotency_error": (
        _refusal(400, error_type="idempotency_error"),
        REFUSED,
        Doubt.UNSAFE_REFUSAL,
        None,
    ),
    "401": (
        _refusal(401),
        NOT_EXECUTED,
        Doubt.NONE,
        Attention.CONFIGURATION,
    ),
    "403": (_refusal(403), NOT_EXECUTED, Doubt.NONE, Attention.CONFIGURATION),
    "409": (_refusal(409), NOT_EXECUTED, Doubt.NONE, None),
    "409 as a page of somebody between": (response(409), INDETERMINATE, Doubt.NONE, None),
    "403 as a page of somebody between": (response(403), INDETERMINATE, Doubt.NONE, None),
    "429 as a page of somebody between": (response(429), INDETERMINATE, Doubt.NONE, None),
    "424": (_refusal(424), INDETERMINATE, Doubt.NONE, None),
    "429": (_refusal(429), NOT_EXECUTED, Doubt.NONE, None),
    "429 lock_timeout": (
        _refusal(429, error_code="lock_timeout"),
        NOT_EXECUTED,
        Doubt.NONE,
        None,
    ),
    "500": (_refusal(500), INDETERMINATE, Doubt.FROZEN, None),
    "500 without a body": (response(500), INDETERMINATE, Doubt.FROZEN, None),
    "500 replayed": (_refusal(500, replayed=True), INDETERMINATE, Doubt.FROZEN, None),
    "502": (response(502), INDETERMINATE, Doubt.NONE, None),
    "503": (_refusal(503), INDETERMINATE, Doubt.NONE, None),
    "504": (response(504), INDETERMINATE, Doubt.NONE, None),
    "418": (response(418), INDETERMINATE, Doubt.NONE, None),
    "a status that is none": (response(0), INDETERMINATE, Doubt.NONE, None),
    "400 as a page of somebody between": (response(400), INDETERMINATE, Doubt.NONE, None),
    "404 as a page of somebody between": (response(404), INDETERMINATE, Doubt.NONE, None),
    "charge_already_refunded": (
        _refusal(400, error_code="charge_already_refunded"),
        REFUSED,
        Doubt.UNSAFE_REFUSAL,
        None,
    ),
    "charge_already_refunded replayed": (
        _refusal(400, error_code="charge_already_refunded", replayed=True),
        REFUSED,
        Doubt.UNSAFE_REFUSAL,
        None,
    ),
    "resource_missing": (
        _refusal(404, error_code="resource_missing"),
        NOT_EXECUTED,
        Doubt.NONE,
        Attention.CONFIGURATION,
    ),
}


@pytest.mark.parametrize("resend", [False, True], ids=["first send", "resend"])
@pytest.mark.parametrize("line", SAME_ON_A_RESEND)
def test_a_line_of_the_table_is_read_as_it_says(line: str, resend: bool) -> None:
    answer, outcome, doubt, attention = SAME_ON_A_RESEND[line]
    reading = _read(answer, resend=resend)
    assert (reading.outcome, reading.doubt, reading.attention) == (outcome, doubt, attention)
    assert reading.refund is None


REFUSALS: dict[str, Answer] = {
    "400": _refusal(400),
    "400 charge_disputed": _refusal(400, error_code="charge_disputed"),
    "400 refund_disputed_payment": _refusal(400, error_code="refund_disputed_payment"),
    "400 charge_not_refundable": _refusal(400, error_code="charge_not_refundable"),
    "400 amount_too_large": _refusal(400, error_code="amount_too_large"),
    "400 amount, without a code": _refusal(400, error_param="amount"),
    "400 too little balance": _refusal(400, error_code="insufficient_balance_for_refund"),
    "402": _refusal(402, error_type="card_error"),
    "402 of another type": _refusal(402, error_type="api_error"),
    "404": _refusal(404),
}


@pytest.mark.parametrize("line", REFUSALS)
def test_a_refusal_of_the_first_send_is_a_refusal(line: str) -> None:
    reading = _read(REFUSALS[line], resend=False)
    assert reading == Classification(outcome=REFUSED)


@pytest.mark.parametrize("line", REFUSALS)
def test_a_refusal_of_a_resend_says_nothing_of_the_first_send(line: str) -> None:
    reading = _read(REFUSALS[line], resend=True)
    assert reading == Classification(outcome=REFUSED, doubt=Doubt.UNSAFE_REFUSAL)


@pytest.mark.parametrize("http_status", [400, 402, 404])
def test_a_refusal_that_is_a_replay_is_the_answer_to_the_first_send(http_status: int) -> None:
    reading = _read(_refusal(http_status, replayed=True), resend=True)
    assert reading == Classification(outcome=REFUSED)


@pytest.mark.parametrize("resend", [False, True])
@pytest.mark.parametrize("status", ["succeeded", "pending", "failed", "something_new"])
def test_a_refund_with_what_was_asked_for_is_accepted(resend: bool, status: str) -> None:
    given = refund(status=status)
    reading = _read(response(200, refund=given), resend=resend)
    assert reading == Classification(outcome=ACCEPTED, refund=given)


@pytest.mark.parametrize("missing", ["charge", "payment_intent", "metadata"])
def test_a_refund_may_leave_out_what_the_others_prove(missing: str) -> None:
    given = refund(**{missing: {} if missing == "metadata" else ""})
    assert _read(response(200, refund=given), resend=False).outcome is ACCEPTED


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": 10_000},
        {"currency": "eur"},
        {"charge": "ch_2"},
        {"payment_intent": "pi_2"},
        {
            "metadata": {
                "reconcile_operation_id": "0195511c-0000-7000-8000-00000000000f",
                "reconcile_environment": "tests",
            }
        },
    ],
)
def test_another_refund_than_the_one_asked_for_is_not_believed(changes: dict[str, Any]) -> None:
    reading = _read(response(200, refund=refund(**changes)), resend=False)
    assert reading == Classification(
        outcome=INDETERMINATE, doubt=Doubt.UNREADABLE, attention=Attention.MISMATCH
    )


@pytest.mark.parametrize("changes", [{"currency": ""}, {"charge": "", "payment_intent": ""}])
def test_a_refund_that_hides_what_it_is_of_is_not_believed(changes: dict[str, Any]) -> None:
    reading = _read(response(200, refund=refund(**changes)), resend=False)
    assert reading == Classification(outcome=INDETERMINATE, doubt=Doubt.UNREADABLE)
