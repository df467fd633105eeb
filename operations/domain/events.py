"""What an event of the provider says, in our words."""

from dataclasses import dataclass

from operations.domain.answers import RefundFacts
from operations.domain.dispute import DisputeFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFacts:
    """One event. `created` in UTC seconds, 0 when it is not a number.

    `refunds` are the refunds it carries; `charge` and `payment_intent` name the payment it is
    about, when it says so. `request_key` is the idempotency key of the call that caused it.
    `about_refunds`: its type speaks of refunds, although it may carry none. `dispute` is the
    dispute that it carries.
    """

    id: str
    type: str
    account: str
    livemode: bool | None
    created: int
    request_key: str
    refunds: tuple[RefundFacts, ...]
    charge: str
    payment_intent: str
    about_refunds: bool
    dispute: DisputeFacts | None = None
