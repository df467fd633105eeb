"""Events on their way: signed, in any order, twice, late, or lost."""

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any

from operations.domain.identity import METADATA_OPERATION
from operations.sandbox.ledger import Charge
from operations.sandbox.shapes import charge_object, refund_object
from tests.simulation.records import Made

SECRET = "whsec_simulated"


@dataclass
class Letter:
    """One event. `lost` ones come only when people fetch them from the provider's list."""

    event_id: str
    raw: bytes
    made: Made
    operation: str
    lost: bool
    about_charge: bool
    deliveries: int = 0


@dataclass
class Mail:
    """All events of a world, oldest first."""

    letters: list[Letter] = field(default_factory=list)

    def write(
        self, kind: str, made: Made, charge: Charge, *, key: str, now: float, lost: bool
    ) -> Letter:
        """Render an event as things stand now, as the provider does."""
        about_charge = kind == "charge.refunded"
        shape = charge_object(charge) if about_charge else refund_object(made.refund)
        body: dict[str, Any] = {
            "id": f"evt_{len(self.letters) + 1:04d}",
            "object": "event",
            "created": int(now),
            "data": {"object": shape},
            "livemode": False,
            "request": {"id": None, "idempotency_key": key or None},
            "type": kind,
        }
        letter = Letter(
            event_id=body["id"],
            raw=json.dumps(body).encode(),
            made=made,
            operation=made.refund.metadata.get(METADATA_OPERATION, ""),
            lost=lost,
            about_charge=about_charge,
        )
        self.letters.append(letter)
        return letter

    def undelivered(self) -> list[Letter]:
        """What has not arrived and is not lost."""
        return [one for one in self.letters if not one.lost and not one.deliveries]


def signature(raw: bytes, now: float) -> str:
    """The header `Stripe-Signature` of a delivery."""
    signed = hmac.new(SECRET.encode(), f"{int(now)}.".encode() + raw, hashlib.sha256)
    return f"t={int(now)},v1={signed.hexdigest()}"
