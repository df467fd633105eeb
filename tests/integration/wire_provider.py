"""The real adapter over the real SDK against raw sockets, and how its answers are classified."""

from dataclasses import dataclass
from typing import Any

from operations.domain.answers import Answer, AnswerKind
from operations.domain.classify import Classification, Doubt, Outcome, classify
from operations.domain.contract import Contract
from operations.domain.matching import RefundTerms
from operations.domain.statuses import Attention
from operations.providers.stripe import STRIPE_CONTRACT, StripeProvider

OPERATION = "0195511c-0000-7000-8000-000000000001"
KEY = "key-of-the-tests"
TERMS = RefundTerms(
    operation_id=OPERATION,
    environment="tests",
    amount=3_800,
    currency="usd",
    charge="ch_1",
    payment_intent="pi_1",
)
MARK = {"reconcile_operation_id": OPERATION, "reconcile_environment": "tests"}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What one send is read as; `on_resend` is None where a resend makes no difference."""

    kind: AnswerKind
    outcome: Outcome
    doubt: Doubt = Doubt.NONE
    attention: Attention | None = None
    doubt_on_resend: Doubt | None = None


LOST = Reading(kind=AnswerKind.CONNECTION_LOST, outcome=Outcome.INDETERMINATE)
NOT_SENT = Reading(kind=AnswerKind.NOT_SENT, outcome=Outcome.NOT_EXECUTED)
UNREADABLE = Reading(
    kind=AnswerKind.UNREADABLE, outcome=Outcome.INDETERMINATE, doubt=Doubt.UNREADABLE
)
IN_DOUBT = Reading(kind=AnswerKind.RESPONSE, outcome=Outcome.INDETERMINATE)
FROZEN = Reading(kind=AnswerKind.RESPONSE, outcome=Outcome.INDETERMINATE, doubt=Doubt.FROZEN)
ACCEPTED = Reading(kind=AnswerKind.RESPONSE, outcome=Outcome.ACCEPTED)
TURNED_AWAY = Reading(kind=AnswerKind.RESPONSE, outcome=Outcome.NOT_EXECUTED)
CONFIGURATION = Reading(
    kind=AnswerKind.RESPONSE,
    outcome=Outcome.NOT_EXECUTED,
    attention=Attention.CONFIGURATION,
)
REFUSED = Reading(
    kind=AnswerKind.RESPONSE, outcome=Outcome.REFUSED, doubt_on_resend=Doubt.UNSAFE_REFUSAL
)
REFUSED_FOR_GOOD = Reading(kind=AnswerKind.RESPONSE, outcome=Outcome.REFUSED)
UNSAFE = Reading(kind=AnswerKind.RESPONSE, outcome=Outcome.REFUSED, doubt=Doubt.UNSAFE_REFUSAL)
MISMATCH = Reading(
    kind=AnswerKind.RESPONSE,
    outcome=Outcome.INDETERMINATE,
    doubt=Doubt.UNREADABLE,
    attention=Attention.MISMATCH,
)


def provider_at(
    url: str,
    *,
    connect_s: float = 1.0,
    read_s: float = 5.0,
    contract: Contract = STRIPE_CONTRACT,
) -> StripeProvider:
    """The adapter as the product makes it, pointed at an address."""
    return StripeProvider(
        api_key="sk_test_of_the_tests",
        api_base=url,
        connect_timeout_s=connect_s,
        read_timeout_s=read_s,
        contract=contract,
    )


def send(provider: StripeProvider, **changes: Any) -> Answer:
    """Send the refund that the terms describe, or nearly."""
    given: dict[str, Any] = {
        "parameters": provider.refund_parameters(
            payment="ch_1", amount=3_800, reason="", metadata=MARK
        ),
        "idempotency_key": KEY,
        "account": "",
    }
    return provider.create_refund(**given | changes)


def read(answer: Answer, *, resend: bool, contract: Contract = STRIPE_CONTRACT) -> Classification:
    """The answer as the product reads it."""
    return classify(answer, terms=TERMS, earlier_in_doubt=resend, contract=contract)


def check(answer: Answer, expected: Reading, *, resend: bool) -> None:
    """Hold an answer against what it should be read as."""
    reading = read(answer, resend=resend)
    doubt = expected.doubt
    if resend and expected.doubt_on_resend is not None:
        doubt = expected.doubt_on_resend
    assert (answer.kind, reading.outcome, reading.doubt, reading.attention) == (
        expected.kind,
        expected.outcome,
        doubt,
        expected.attention,
    )
    assert (reading.refund is not None) == (expected.outcome is Outcome.ACCEPTED)


def check_both(answer: Answer, expected: Reading) -> None:
    """The same, as the answer to a first send and to a resend after an answer that was lost."""
    for resend in (False, True):
        check(answer, expected, resend=resend)


def refund_body(**changes: Any) -> dict[str, Any]:
    """The refund object that fits, or nearly; a field set to None is left out."""
    fitting: dict[str, Any] = {
        "id": "re_1",
        "object": "refund",
        "amount": 3_800,
        "currency": "usd",
        "charge": "ch_1",
        "payment_intent": "pi_1",
        "created": 1_700_000_000,
        "status": "succeeded",
        "metadata": MARK,
    }
    return {name: value for name, value in (fitting | changes).items() if value is not None}


def error_body(kind: str = "invalid_request_error", **fields: str) -> dict[str, Any]:
    """An error in the provider's form."""
    return {"error": {"type": kind, "message": "It was not done.", **fields}}
