"""Charges, their payment intents and their refunds: the money, without HTTP.

Amounts are integers in Stripe's unit of the currency; times are UTC seconds. A refund that failed
or was canceled gives its amount back to the charge, as at Stripe.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from .answers import JsonObject, StripeError, no_such
from .money import shown
from .state import Clock, Record

DEAD = ("failed", "canceled")
STATUSES = ("pending", "requires_action", "succeeded", "failed", "canceled")


@dataclass
class Charge:
    """A payment. Its payment intent exists alongside it and has no state of its own."""

    id: str
    payment_intent: str
    account: str
    created: int
    amount: int
    currency: str
    amount_captured: int
    type: str = "card"
    metadata: dict[str, str] = field(default_factory=dict)
    amount_refunded: int = 0
    disputed: bool = False
    refundable: bool = True

    @property
    def left(self) -> int:
        """What can still be refunded."""
        return self.amount_captured - self.amount_refunded

    @property
    def refunded(self) -> bool:
        """Whether all of it was refunded."""
        return self.amount_captured > 0 and self.left <= 0

    @property
    def payments(self) -> tuple[str, str]:
        """Both ids under which the payment is known."""
        return self.id, self.payment_intent


@dataclass
class Refund:
    """One refund. `seq` orders refunds of one second; `made` is `created` with its fraction.

    One that is not `listed` never shows in a list.
    """

    id: str
    seq: int
    account: str
    created: int
    amount: int
    currency: str
    charge: str
    payment_intent: str
    status: str
    reason: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    failure_reason: str | None = None
    made: float = 0.0
    listed: bool = True

    @property
    def live(self) -> bool:
        """Whether it counts against the charge."""
        return self.status not in DEAD


def new_id(prefix: str) -> str:
    """A random id that looks like one of Stripe's."""
    return f"{prefix}_3{secrets.token_hex(11)}"


class Ledger:
    """All payments and refunds of all accounts; `""` is the platform's own account."""

    def __init__(self, clock: Clock, record: Record) -> None:
        self.clock = clock
        self._record = record
        self.charges: dict[str, Charge] = {}
        self.refunds: dict[str, Refund] = {}
        self._charge_of_intent: dict[str, str] = {}
        self._refunds_of_charge: dict[str, list[Refund]] = {}

    def add_charge(self, charge: Charge) -> None:
        """Put a payment that was made elsewhere into the ledger."""
        self.charges[charge.id] = charge
        self._charge_of_intent[charge.payment_intent] = charge.id
        self._refunds_of_charge.setdefault(charge.id, [])
        self._put("charge", charge)

    def known_payments(self, payment: str | None) -> tuple[str, ...]:
        """Every id of the payment; the given one alone if the ledger does not have it."""
        if payment is None:
            return ()
        charge = self.charges.get(self._charge_of_intent.get(payment, payment))
        return charge.payments if charge else (payment,)

    def charge(self, account: str, identifier: str, param: str = "charge") -> Charge:
        """The account's charge with this id, or 404."""
        charge = self.charges.get(identifier)
        if charge is None or charge.account != account:
            raise no_such("charge", identifier, param)
        return charge

    def charge_of_intent(self, account: str, identifier: str, param: str) -> Charge:
        """The charge of the account's payment intent, or 404."""
        charge = self.charges.get(self._charge_of_intent.get(identifier, ""))
        if charge is None or charge.account != account:
            raise no_such("payment_intent", identifier, param)
        return charge

    def refund(self, account: str, identifier: str, param: str = "refund") -> Refund:
        """The account's refund with this id, or 404."""
        refund = self.refunds.get(identifier)
        if refund is None or refund.account != account:
            raise no_such("refund", identifier, param)
        return refund

    def refunds_of(self, charge: Charge) -> list[Refund]:
        """The charge's refunds, oldest first, failed and canceled ones too."""
        return self._refunds_of_charge[charge.id]

    def create_refund(
        self,
        charge: Charge,
        *,
        amount: int | None,
        reason: str | None,
        metadata: dict[str, str],
        status: str | None = None,
        listed: bool = True,
    ) -> Refund:
        """Refund `amount`, or all that is left, or refuse as Stripe does.

        Without a `status` a card refund succeeds at once and a SEPA one is pending.
        """
        wanted = self._amount_or_refuse(charge, amount)
        later = charge.type != "card"
        refund = Refund(
            id=new_id("pyr" if later else "re"),
            seq=len(self.refunds) + 1,
            account=charge.account,
            created=self.clock.seconds(),
            amount=wanted,
            currency=charge.currency,
            charge=charge.id,
            payment_intent=charge.payment_intent,
            status=status or ("pending" if later else "succeeded"),
            reason=reason,
            metadata=dict(metadata),
            made=self.clock.now(),
            listed=listed,
        )
        self._keep_refund(refund)
        if refund.live:
            charge.amount_refunded += wanted
        self._put("charge", charge)
        self._put("refund", refund)
        return refund

    def set_status(self, refund: Refund, status: str, failure_reason: str | None) -> JsonObject:
        """Change a refund's status and its charge's total; gives back what was there before."""
        previous: JsonObject = {"status": refund.status}
        charge = self.charges[refund.charge]
        was_live = refund.live
        refund.status = status
        if refund.failure_reason != failure_reason:
            previous["failure_reason"] = refund.failure_reason
            refund.failure_reason = failure_reason
        charge.amount_refunded += refund.amount * (refund.live - was_live)
        self._put("charge", charge)
        self._put("refund", refund)
        return previous

    def set_metadata(self, refund: Refund, changes: dict[str, str]) -> JsonObject:
        """Merge metadata, an empty value removing a key; gives back the values from before."""
        previous = {key: refund.metadata.get(key) for key in changes}
        merged = {**refund.metadata, **changes}
        refund.metadata = {key: value for key, value in merged.items() if value != ""}
        self._put("refund", refund)
        return {"metadata": previous}

    def dispute(self, charge: Charge, *, refundable: bool) -> None:
        """Mark a charge as disputed; an inquiry leaves it refundable."""
        charge.disputed, charge.refundable = True, refundable
        self._put("charge", charge)

    def clear(self) -> None:
        """Forget everything, for a reset."""
        for store in (
            self.charges,
            self.refunds,
            self._charge_of_intent,
            self._refunds_of_charge,
        ):
            store.clear()

    def restore(self, kind: str, payload: JsonObject) -> bool:
        """Take in one journal entry; says whether it was one of ours."""
        if kind == "charge":
            self.add_charge(Charge(**payload))
        elif kind == "refund":
            self._keep_refund(Refund(**payload))
        else:
            return False
        return True

    def snapshot(self) -> Iterator[tuple[str, JsonObject]]:
        """Journal entries for everything in the ledger."""
        for charge in self.charges.values():
            yield "charge", vars(charge)
        for refund in self.refunds.values():
            yield "refund", vars(refund)

    def _amount_or_refuse(self, charge: Charge, amount: int | None) -> int:
        if charge.disputed and not charge.refundable:
            raise _refusal(
                f"Charge {charge.id} has been charged back; cannot issue a refund.",
                "charge_disputed",
            )
        if charge.amount_captured == 0:
            raise _refusal(
                f"Charge {charge.id} has not been captured; it cannot be refunded.",
                "charge_not_refundable",
            )
        if charge.left <= 0:
            raise _refusal(
                f"Charge {charge.id} has already been refunded.", "charge_already_refunded"
            )
        wanted = charge.left if amount is None else amount
        if wanted > charge.left:
            raise StripeError(
                400,
                f"Refund amount ({shown(wanted, charge.currency)}) is greater than unrefunded "
                f"amount on charge ({shown(charge.left, charge.currency)})",
                param="amount",
                executed=True,
            )
        return wanted

    def _keep_refund(self, refund: Refund) -> None:
        known = self.refunds.get(refund.id)
        of_charge = self._refunds_of_charge[refund.charge]
        if known is None:
            of_charge.append(refund)
        else:
            of_charge[of_charge.index(known)] = refund
        self.refunds[refund.id] = refund

    def _put(self, kind: str, value: Charge | Refund) -> None:
        self._record(kind, vars(value))


def _refusal(message: str, code: str) -> StripeError:
    return StripeError(400, message, code=code, executed=True)
