"""Contracts and terms that the tests of the rules start from."""

from typing import Any

from operations.domain.answers import Answer, AnswerKind, RefundFacts
from operations.domain.contract import Contract, FindBy, KeyLocation, SavedAnswers
from operations.domain.matching import RefundTerms

STRIPE_LIKE = Contract(
    provider="like_stripe",
    key_location=KeyLocation.HEADER,
    key_max_length=255,
    key_window_s=86_400,
    saved_answers=SavedAnswers.ALL_EXECUTED,
    frozen_statuses=frozenset([500]),
    find_by=frozenset([FindBy.ID, FindBy.PAYMENT]),
    lookup_conclusive_after_s=60,
    reads_per_s=25.0,
    writes_per_s=25.0,
)

OPERATION = "0195511c-0000-7000-8000-000000000001"
TERMS = RefundTerms(
    operation_id=OPERATION,
    environment="tests",
    amount=3_800,
    currency="usd",
    charge="ch_1",
    payment_intent="pi_1",
    account="",
    livemode=False,
)
MARK = {"reconcile_operation_id": OPERATION, "reconcile_environment": "tests"}


def refund(**changes: Any) -> RefundFacts:
    """The refund that was asked for, or nearly."""
    fitting: dict[str, Any] = {
        "id": "re_1",
        "status": "succeeded",
        "amount": 3_800,
        "currency": "usd",
        "charge": "ch_1",
        "payment_intent": "pi_1",
        "metadata": MARK,
    }
    return RefundFacts(**fitting | changes)


def response(http_status: int, **fields: Any) -> Answer:
    """An answer that came whole."""
    return Answer(kind=AnswerKind.RESPONSE, http_status=http_status, **fields)
