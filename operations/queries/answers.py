"""What an operation is to the one who asked for it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, assert_never

from babel.numbers import format_currency

from operations.domain.advice import customer_message
from operations.domain.money import Money
from operations.domain.refund_state import counts_as_refunded
from operations.domain.sentences import Sentence
from operations.domain.statuses import Attention, Status
from operations.models import Operation

AnswerStatus = Literal["refunded", "processing", "refused", "unconfirmed", "checking"]

#: What an asker is told to wait when nothing else is planned, in seconds.
_DEFAULT_WAIT_S = 30


def answer(operation: Operation, *, now: datetime) -> tuple[int, dict[str, Any]]:
    """HTTP status and body: 200 when it is settled, 202 while it is not."""
    status = Status(operation.status)
    settled = status in (Status.SUCCEEDED, Status.FAILED)
    body = {
        "operation_id": operation.pk,
        "status": _status(status),
        "attempts": operation.attempts_made,
        "provider_object_id": operation.provider_object_id or None,
        "note": _note(operation, status),
        "customer_message": _in_english(customer_message_of(operation)),
        "retry_after_s": None if settled else _wait_s(operation, now),
        "next_check_at": None if settled else operation.next_check_at,
        "code": operation.failure_code or "refused" if status is Status.FAILED else None,
        "message": _failure(operation) if status is Status.FAILED else None,
    }
    return (200 if settled else 202), body


#: From the one that is furthest from its end to the one that is there.
_FURTHEST_FIRST: tuple[AnswerStatus, ...] = (
    "checking",
    "unconfirmed",
    "processing",
    "refused",
    "refunded",
)


def group_answer(operations: Sequence[Operation], *, now: datetime) -> tuple[int, dict[str, Any]]:
    """The parts of a group: 200 when all are settled, 202 while one is not."""
    answers = [answer(operation, now=now) for operation in operations]
    statuses = {body["status"] for _, body in answers}
    body = {
        "group": operations[0].group,
        "status": next(status for status in _FURTHEST_FIRST if status in statuses),
        "refunds": [body for _, body in answers],
    }
    return max(code for code, _ in answers), body


def _status(status: Status) -> AnswerStatus:
    match status:
        case Status.SUCCEEDED:
            return "refunded"
        case Status.PROCESSING:
            return "processing"
        case Status.FAILED:
            return "refused"
        case Status.OPEN:
            return "unconfirmed"
        case Status.UNKNOWN:
            return "checking"
        case _:
            assert_never(status)


def _note(operation: Operation, status: Status) -> str:
    match status:
        case Status.SUCCEEDED:
            return (
                "The provider confirmed this refund. The same request again gets this answer; "
                "a second refund of this order needs another reference."
            )
        case Status.PROCESSING:
            return "The provider has the refund and has not finished it. Nothing more is sent."
        case Status.FAILED if is_contested(operation):
            return (
                "This was closed as not made, and yet the provider shows a refund of it. People "
                "are finding out what holds; do not ask for it in another way."
            )
        case Status.FAILED:
            return "The refund was not made. No money moved for this operation."
        case Status.OPEN if operation.account.paused_at is not None:
            return "Sending is paused by our staff. It goes on by itself when they resume it."
        case Status.OPEN:
            return (
                "Not confirmed yet. Asking again is safe: it is sent with the same idempotency "
                "key, or not at all."
            )
        case Status.UNKNOWN:
            return (
                "Nobody knows yet whether the money moved. It is being found out; nothing is "
                "sent however often it is asked."
            )
        case _:
            assert_never(status)


def customer_message_of(operation: Operation) -> Sentence:
    """What the customer can be told of it now; the API and the console say the same."""
    return customer_message(
        status=Status(operation.status),
        contested=is_contested(operation),
        money=operation.money,
        order_id=operation.order_id,
    )


def is_contested(operation: Operation) -> bool:
    """Whether a refund may be there although the operation has failed."""
    return (
        Attention.CONFLICT in operation.attention
        or Attention.DUPLICATE_REFUND in operation.attention
        or (bool(operation.provider_object_id) and counts_as_refunded(operation.provider_status))
    )


def _in_english(sentence: Sentence) -> str:
    """A sentence for callers of the API, who read English."""
    values = {
        name: money_text(value)
        if isinstance(value, Money)
        else str(Sentence("{it}", {"it": value}))
        for name, value in sentence.values.items()
    }
    return sentence.text.format(**values)


def money_text(money: Money) -> str:
    """The amount for people, with the decimals that the currency has at Stripe."""
    return format_currency(
        money.major(), money.currency.upper(), locale="en", decimal_quantization=False
    )


def _failure(operation: Operation) -> str:
    return operation.failure_message or "The provider refused this refund."


def _wait_s(operation: Operation, now: datetime) -> int:
    times = [time for time in (operation.next_send_at, operation.next_check_at) if time]
    if not times:
        return _DEFAULT_WAIT_S
    return max(1, min(3_600, round((min(times) - now).total_seconds())))
