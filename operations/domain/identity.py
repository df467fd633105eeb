"""Who an operation is: its id, its idempotency key and the hash of its frozen input."""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

KIND_REFUND = "refund"
METADATA_OPERATION = "reconcile_operation_id"
METADATA_ENVIRONMENT = "reconcile_environment"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundInput:
    """What was asked for, frozen at the first request. `amount` in the currency's Stripe unit.

    `payment` is the id as the caller wrote it; a charge and its payment intent name the same
    payment, so equality of payments is decided on the provider's charge id, not on this text.
    """

    account: str
    order_id: str
    reference: str
    amount: int
    currency: str
    payment: str
    customer_account: str = ""
    reason: str = ""
    group: UUID | None = None

    def digest(self) -> str:
        """SHA-256 (hex) over what makes two requests the same wish.

        Account, order, reference, amount, currency, customer and group count. `reason` is a
        remark of the model and does not. `payment` is compared by charge, because a charge and
        its payment intent are two names of one payment.
        """
        fields = {
            "account": self.account,
            "amount": self.amount,
            "currency": self.currency,
            "customer_account": self.customer_account,
            "kind": KIND_REFUND,
            "order_id": self.order_id,
            "reference": self.reference,
        }
        if self.group is not None:
            fields["group"] = str(self.group)
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def group_id(parts: Sequence[RefundInput]) -> UUID:
    """The id of a group: made from its parts, so that the same group asked for again has it too."""
    text = "\n".join(sorted(f"{part.digest()} {part.payment}" for part in parts))
    return _uuid(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16]), version=8)


def uuid7(now: datetime) -> UUID:
    """A UUID version 7 (RFC 9562): 48 bits of milliseconds since 1970, then random bits."""
    milliseconds = (now - _EPOCH) // timedelta(milliseconds=1)
    value = (milliseconds & ((1 << 48) - 1)) << 80
    value |= secrets.randbits(80)
    return _uuid(value, version=7)


def _uuid(value: int, *, version: int) -> UUID:
    """These 128 bits with the version's and variant's set; UUID itself knows 1 to 5 in 3.11."""
    value = (value & ~(0xF << 76)) | (version << 76)
    return UUID(int=(value & ~(0x3 << 62)) | (0x2 << 62))


def idempotency_key(operation_id: UUID) -> str:
    """The key of an operation: made from its id alone, so that it can never be made twice."""
    return f"recon-{operation_id}"


def in_one_order(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The same body with its names sorted, at every depth.

    The database keeps no order of names, and a provider may compare a repeated body letter by
    letter: every send of an operation has to look like its first.
    """
    return {
        name: in_one_order(value) if isinstance(value, Mapping) else value
        for name, value in sorted(parameters.items())
    }


def metadata(operation_id: UUID, environment: str) -> dict[str, str]:
    """What travels with the refund at the provider and comes back in webhooks and lists."""
    return {METADATA_OPERATION: str(operation_id), METADATA_ENVIRONMENT: environment}
