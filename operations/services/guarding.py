"""What stands between the services and a provider, whichever it is.

No call while a transaction is open; a token from the account's bucket before each call; reads are
tried again by a policy of their own, because reading twice does no harm. A send is never tried
again here: each one is an attempt that was written down.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import transaction

from operations.domain.answers import (
    Answer,
    AnswerKind,
    EventPage,
    PaymentFacts,
    RefundFacts,
    RefundList,
)
from operations.domain.budgets import backoff_s
from operations.domain.contract import Contract
from operations.models import Account, RateBucket
from operations.providers import Provider, ReadFailed, ReadRefused

_Read = TypeVar("_Read")


class ProviderCallInTransaction(RuntimeError):
    """A provider was about to be called with a transaction open; nothing was sent."""


@dataclass(frozen=True, kw_only=True)
class ReadPolicy:
    """How often a read is tried, and the first pause between two tries, in seconds."""

    attempts: int = 3
    backoff_base_s: float = 0.2


@dataclass(frozen=True, kw_only=True)
class GuardedProvider:
    """A provider behind these guards. `longest_wait_s`: the most to wait for a token."""

    inner: Provider
    holder: Account
    sleep: Callable[[float], None]
    jitter: Callable[[], float]
    reads: ReadPolicy
    longest_wait_s: float

    @property
    def contract(self) -> Contract:
        """The provider's promises."""
        return self.inner.contract

    @property
    def endpoint(self) -> str:
        """Where sends go."""
        return self.inner.endpoint

    def refund_parameters(
        self, *, payment: str, amount: int, reason: str, metadata: Mapping[str, str]
    ) -> dict[str, Any]:
        """The body of the send; calls nobody."""
        return self.inner.refund_parameters(
            payment=payment, amount=amount, reason=reason, metadata=metadata
        )

    def create_refund(
        self, *, parameters: Mapping[str, Any], idempotency_key: str, account: str
    ) -> Answer:
        """Send once, or not at all when the account's own rate limit leaves no room for it."""
        self._refuse_in_transaction("create_refund")
        if not self._wait_for_token("write", self.contract.writes_per_s):
            return Answer(
                kind=AnswerKind.NOT_SENT,
                message="Not sent: the account's own rate limit was reached.",
                retry_after_s=self.longest_wait_s,
            )
        return self.inner.create_refund(
            parameters=parameters, idempotency_key=idempotency_key, account=account
        )

    def read_payment(self, *, payment: str, account: str) -> PaymentFacts:
        """Read a payment. Raises PaymentNotFound, ReadFailed."""
        return self._read(
            "read_payment", lambda: self.inner.read_payment(payment=payment, account=account)
        )

    def read_refund(self, *, refund_id: str, account: str) -> RefundFacts:
        """Read one refund. Raises RefundNotFound, ReadFailed."""
        return self._read(
            "read_refund", lambda: self.inner.read_refund(refund_id=refund_id, account=account)
        )

    def list_refunds(self, *, payment: str, account: str) -> RefundList:
        """All refunds of a payment. Raises ReadFailed."""
        return self._read(
            "list_refunds", lambda: self.inner.list_refunds(payment=payment, account=account)
        )

    def list_events(self, *, since: int, after: str, account: str) -> EventPage:
        """One page of events about refunds. Raises ReadFailed."""
        return self._read(
            "list_events",
            lambda: self.inner.list_events(since=since, after=after, account=account),
        )

    def _read(self, name: str, call: Callable[[], _Read]) -> _Read:
        """Try a read a few times; what the provider refused is not asked again."""
        self._refuse_in_transaction(name)
        for attempt in range(1, self.reads.attempts + 1):
            if not self._wait_for_token("read", self.contract.reads_per_s):
                raise ReadFailed("The account's own limit for reads was reached.")
            try:
                return call()
            except ReadRefused:
                raise
            except ReadFailed:
                if attempt == self.reads.attempts:
                    raise
                pause = backoff_s(
                    attempts=attempt,
                    base_s=self.reads.backoff_base_s,
                    jitter=self.jitter(),
                )
            self.sleep(pause)
        raise AssertionError("A read is tried at least once.")

    def _wait_for_token(self, kind: str, per_s: float | None) -> bool:
        if per_s is None:
            return True
        wait_s = RateBucket.take(
            account=self.holder,
            kind=kind,
            per_s=per_s,
            burst=per_s,
            most_s=self.longest_wait_s,
        )
        if wait_s is None:
            return False
        if wait_s > 0:
            self.sleep(wait_s)
        return True

    def _refuse_in_transaction(self, name: str) -> None:
        if transaction.get_connection().in_atomic_block:
            raise ProviderCallInTransaction(f"{name} was called inside a transaction.")
