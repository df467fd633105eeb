"""What an event of the provider says, in our words."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from operations.domain.answers import RefundFacts
from operations.domain.dispute import DisputeFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFacts:
    """One event. `created` in UTC seconds, 0 when it is no time.

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

    @property
    def relevant(self) -> bool:
        """Whether there is anything to do about it."""
        return self.about_refunds or self.dispute is not None


def facts_to_json(facts: EventFacts) -> dict[str, Any]:
    """The facts as JSON holds them."""
    return {
        "id": facts.id,
        "type": facts.type,
        "account": facts.account,
        "livemode": facts.livemode,
        "created": facts.created,
        "request_key": facts.request_key,
        "refunds": [_values(refund) for refund in facts.refunds],
        "charge": facts.charge,
        "payment_intent": facts.payment_intent,
        "about_refunds": facts.about_refunds,
        "dispute": _values(facts.dispute) if facts.dispute else None,
    }


def facts_from_json(kept: Mapping[str, Any]) -> EventFacts:
    """The facts as they were written by `facts_to_json`."""
    refunds = tuple(RefundFacts(**refund) for refund in kept["refunds"])
    dispute = DisputeFacts(**kept["dispute"]) if kept.get("dispute") else None
    return EventFacts(**{**kept, "refunds": refunds, "dispute": dispute})


def _values(facts: RefundFacts | DisputeFacts) -> dict[str, Any]:
    return {name: getattr(facts, name) for name in _NAMES[type(facts)]}


_NAMES: dict[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind)) for kind in (RefundFacts, DisputeFacts)
}
