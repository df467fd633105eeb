"""What one attempt tells about the refund (Stripe, "Idempotent requests" and "Error handling")."""

from dataclasses import dataclass
from enum import StrEnum

from operations.domain.answers import Answer, AnswerKind, RefundFacts
from operations.domain.contract import Contract
from operations.domain.matching import RefundTerms, differences, names_the_payment
from operations.domain.statuses import Attention


class Outcome(StrEnum):
    """The four things an attempt can be."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_EXECUTED = "not_executed"
    INDETERMINATE = "indeterminate"


class Doubt(StrEnum):
    """What is special about an attempt beyond its outcome."""

    NONE = ""
    FROZEN = "frozen"
    UNREADABLE = "unreadable"
    INTERRUPTED = "interrupted"
    UNSAFE_REFUSAL = "unsafe_refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The reading of one answer. `attention` asks for a person whatever the status."""

    outcome: Outcome
    doubt: Doubt = Doubt.NONE
    refund: RefundFacts | None = None
    attention: Attention | None = None


#: Refusals that say something about the payment, not about this refund: list before believing.
_LOOK_FIRST = frozenset(["charge_already_refunded"])
#: The object is not where we look for it: a wrong account or mode, not a refused refund.
_WRONG_PLACE = frozenset(["resource_missing"])

_INDETERMINATE = Classification(outcome=Outcome.INDETERMINATE)
_NOT_EXECUTED = Classification(outcome=Outcome.NOT_EXECUTED)
_UNREADABLE = Classification(outcome=Outcome.INDETERMINATE, doubt=Doubt.UNREADABLE)
_CONFIGURATION = Classification(outcome=Outcome.NOT_EXECUTED, attention=Attention.CONFIGURATION)
_UNSAFE_REFUSAL = Classification(outcome=Outcome.REFUSED, doubt=Doubt.UNSAFE_REFUSAL)


def classify(
    answer: Answer, *, terms: RefundTerms, earlier_in_doubt: bool, contract: Contract
) -> Classification:
    """Read one answer.

    `earlier_in_doubt`: an earlier attempt of this operation may have been executed, so that a
    refusal now, unless the provider marks it as the replay of its first answer, says nothing
    about that earlier one.
    """
    match answer.kind:
        case AnswerKind.NOT_SENT:
            return _NOT_EXECUTED
        case AnswerKind.CONNECTION_LOST:
            return _INDETERMINATE
        case AnswerKind.UNREADABLE:
            return _UNREADABLE
        case AnswerKind.INTERRUPTED:
            return Classification(outcome=Outcome.INDETERMINATE, doubt=Doubt.INTERRUPTED)
        case AnswerKind.RESPONSE:
            return _classify_response(
                answer,
                terms=terms,
                earlier_in_doubt=earlier_in_doubt,
                contract=contract,
            )


def _classify_response(
    answer: Answer, *, terms: RefundTerms, earlier_in_doubt: bool, contract: Contract
) -> Classification:
    status = answer.http_status or 0
    if status in contract.frozen_statuses:
        return Classification(outcome=Outcome.INDETERMINATE, doubt=Doubt.FROZEN)
    if 200 <= status < 300:
        return _classify_success(answer, terms)
    if 300 <= status < 400:
        return _UNREADABLE
    if not answer.error_type:
        # A page of somebody between may stand in front of an answer that was lost.
        return _INDETERMINATE
    if status in (401, 403):
        return _CONFIGURATION
    if status == 429 or status in contract.concurrent_statuses:
        return _NOT_EXECUTED
    if status in (400, 402, 404):
        return _classify_refusal(answer, earlier_in_doubt=earlier_in_doubt)
    return _INDETERMINATE


def _classify_success(answer: Answer, terms: RefundTerms) -> Classification:
    refund = answer.refund
    if refund is None or not refund.currency:
        return _UNREADABLE
    if differences(terms, refund):
        return Classification(
            outcome=Outcome.INDETERMINATE,
            doubt=Doubt.UNREADABLE,
            attention=Attention.MISMATCH,
        )
    if not names_the_payment(terms, refund):
        return _UNREADABLE
    return Classification(outcome=Outcome.ACCEPTED, refund=refund)


def _classify_refusal(answer: Answer, *, earlier_in_doubt: bool) -> Classification:
    if answer.error_type == "idempotency_error" or answer.error_code in _LOOK_FIRST:
        return _UNSAFE_REFUSAL
    if answer.error_code in _WRONG_PLACE:
        return _CONFIGURATION
    if earlier_in_doubt and not answer.replayed:
        return _UNSAFE_REFUSAL
    return Classification(outcome=Outcome.REFUSED)
