"""The log of every `POST /v1/refunds` that arrived, and the counts made from log and ledger.

The counts are what the provider knows by itself; nothing in them comes from the product's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .answers import JsonObject
from .ledger import Ledger, Refund
from .state import Clock, Record

OPERATION_FIELD = "reconcile_operation_id"
LOGGED_HEADERS = (
    "user-agent", "idempotency-key", "stripe-version", "stripe-account",
    "x-stripe-client-user-agent",
)  # fmt: skip


@dataclass
class Send:
    """One arrival. `outcome` is `executed`, `replayed`, or says why nothing was executed.

    `interrupted` is a send during which the sandbox was killed: it may have had its effect.
    `time` and `ended` are the sandbox's UTC seconds; the reply goes on the wire after `ended`.
    """

    request_id: str
    time: float
    account: str
    key: str | None
    payment: str | None
    operation: str | None
    params: dict[str, str]
    headers: dict[str, str]
    outcome: str = "in_progress"
    faults: list[str] = field(default_factory=list)
    status: int | None = None
    code: str | None = None
    refund: str | None = None
    ended: float | None = None


class SendLog:
    """All sends, oldest first."""

    def __init__(self, clock: Clock, record: Record) -> None:
        self.clock = clock
        self._record = record
        self.sends: dict[str, Send] = {}

    def arrived(self, send: Send) -> None:
        """Log a send before anything else is done with it."""
        self.sends[send.request_id] = send
        self._record("send", vars(send))

    def ended(self, send: Send) -> None:
        """Log what became of it."""
        self._record("send", vars(send))

    def mark_interrupted(self) -> None:
        """After a restart: nothing is in progress any more."""
        for send in self.sends.values():
            if send.outcome == "in_progress":
                send.outcome = "interrupted"

    def clear(self) -> None:
        """Forget everything, for a reset."""
        self.sends.clear()

    def restore(self, kind: str, payload: JsonObject) -> bool:
        """Take in one journal entry; says whether it was one of ours."""
        if kind == "send":
            send = Send(**payload)
            self.sends[send.request_id] = send
            return True
        return False

    def snapshot(self) -> Iterator[tuple[str, JsonObject]]:
        """Journal entries for all sends."""
        for send in self.sends.values():
            yield "send", vars(send)


def counts(ledger: Ledger, sends: Iterable[Send], payment: str | None = None) -> JsonObject:
    """Totals, and figures by payment (under both its ids) and by our operation id.

    `refunds` and `amount` leave out failed and canceled refunds, `refunds_all` does not.
    """
    known = ledger.known_payments(payment)
    chosen = [s for s in sends if payment is None or s.payment in known]
    refunds = [r for r in ledger.refunds.values() if payment is None or r.charge in known]
    by_payment: dict[str, JsonObject] = {}
    by_operation: dict[str, JsonObject] = {}
    for charge in ledger.charges.values():
        if payment is None or charge.id in known:
            by_payment[charge.id] = by_payment[charge.payment_intent] = _figures()
    for refund in refunds:
        _add_refund(by_payment[refund.charge], refund)
        operation = refund.metadata.get(OPERATION_FIELD)
        if operation is not None:
            _add_refund(by_operation.setdefault(operation, _figures()), refund)
    for send in chosen:
        if send.payment is not None:
            _add_send(by_payment.setdefault(send.payment, _figures()), send)
        if send.operation is not None:
            _add_send(by_operation.setdefault(send.operation, _figures()), send)
    return {
        "refunds": sum(refund.live for refund in refunds),
        "refunds_all": len(refunds),
        "amount": sum(refund.amount for refund in refunds if refund.live),
        "sends": len(chosen),
        "by_payment": by_payment,
        "by_operation": by_operation,
    }


def _figures() -> JsonObject:
    return {"refunds": 0, "refunds_all": 0, "amount": 0, "sends": 0, "keys": []}


def _add_refund(figures: JsonObject, refund: Refund) -> None:
    figures["refunds_all"] += 1
    figures["refunds"] += refund.live
    figures["amount"] += refund.amount * refund.live


def _add_send(figures: JsonObject, send: Send) -> None:
    figures["sends"] += 1
    if send.key is not None and send.key not in figures["keys"]:
        figures["keys"].append(send.key)
