"""What comes back from a provider, in our words: answers to sends, refunds, payments, lists."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class AnswerKind(StrEnum):
    """How one send ended on the wire."""

    RESPONSE = "response"
    NOT_SENT = "not_sent"
    CONNECTION_LOST = "connection_lost"
    UNREADABLE = "unreadable"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundFacts:
    """A refund as the provider shows it. `amount` in the Stripe unit, `created` in UTC seconds.

    Ids are kept as given; nothing may assume a prefix. `charge` and `payment_intent` are "" when
    the provider leaves them out. `reference` is the bank's (an ARN, say), `action_expires_at` until
    when the customer may do what a refund in `requires_action` asks for (UTC seconds, 0 for none).
    """

    id: str
    status: str
    amount: int
    currency: str
    charge: str = ""
    payment_intent: str = ""
    created: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    failure_reason: str = ""
    pending_reason: str = ""
    reference: str = ""
    action_expires_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentFacts:
    """A payment as the provider shows it. Amounts in the Stripe unit of `currency`."""

    charge: str
    payment_intent: str
    currency: str
    captured: int
    refunded: int
    livemode: bool
    disputed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundList:
    """The refunds of one payment. `complete`: read to the last page."""

    refunds: tuple[RefundFacts, ...]
    complete: bool
    pages: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """One page of the provider's events, newest first, each as plain JSON.

    `next_after` is the id to go on after, "" when this is the last page.
    """

    events: tuple[Mapping[str, Any], ...]
    next_after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one send brought back. `kind` tells how it ended on the wire.

    `refund` is set only for a 2xx whose body is a readable refund object. `body` is the JSON as
    it came, or the start of the text. `duration_ms` is the time between the send and the end.
    """

    kind: AnswerKind
    http_status: int | None = None
    body: Any = None
    refund: RefundFacts | None = None
    replayed: bool = False
    should_retry: bool | None = None
    retry_after_s: float | None = None
    request_id: str = ""
    error_type: str = ""
    error_code: str = ""
    error_param: str = ""
    message: str = ""
    duration_ms: int = 0
