"""What a provider must offer."""

from collections.abc import Mapping
from typing import Any, Protocol

from operations.domain.answers import Answer, EventPage, PaymentFacts, RefundFacts, RefundList
from operations.domain.contract import Contract


class ReadFailed(Exception):
    """The provider could not be read (network, 5xx, rate limit). Reading again later is safe."""


class ReadRefused(ReadFailed):
    """The provider refused the read: a key, account or mode that does not fit."""


class PaymentNotFound(Exception):
    """The provider has no such payment in this account and mode."""


class RefundNotFound(Exception):
    """The provider has no such refund in this account and mode."""


class Provider(Protocol):
    """One provider. Every method may block on the network and is called outside transactions.

    `account` is the provider's id of a connected account, "" for the key's own account. Amounts
    are integers in the Stripe unit of the currency.
    """

    @property
    def contract(self) -> Contract:
        """What this provider promises."""

    @property
    def endpoint(self) -> str:
        """Where its sends go; the key is stored with it."""

    def refund_parameters(
        self, *, payment: str, amount: int, reason: str, metadata: Mapping[str, str]
    ) -> dict[str, Any]:
        """The body of the send, frozen with the operation. Raises ValueError on a bad amount."""

    def create_refund(
        self, *, parameters: Mapping[str, Any], idempotency_key: str, account: str
    ) -> Answer:
        """Send once. What the outside world does comes back as an Answer, never as an exception.

        Raises ValueError, before anything is sent, for parameters or a key that must not leave.
        """

    def read_payment(self, *, payment: str, account: str) -> PaymentFacts:
        """Read a payment by charge or payment intent id. Raises PaymentNotFound, ReadFailed."""

    def read_refund(self, *, refund_id: str, account: str) -> RefundFacts:
        """Read one refund. Raises RefundNotFound, ReadFailed."""

    def list_refunds(self, *, payment: str, account: str) -> RefundList:
        """All refunds of a payment, read to the last page. Raises ReadFailed."""

    def list_events(self, *, since: int, after: str, account: str) -> EventPage:
        """One page of events about refunds made at or after `since` (UTC seconds), newest first.

        `after` is the id that the page before ended with, "" for the first. Raises ReadFailed.
        """
