"""The recorded cases of tests/cases, and the operations that they speak of."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from operations.domain.answers import RefundFacts
from operations.domain.statuses import Fact, UnknownReason
from operations.models import Account, EvidenceSource, Operation, Payment
from operations.services.actors import LOOKUP_JOB
from operations.services.learning import Learned
from operations.services.seeing import see_refund
from operations.services.settling import lock

from .recorded import Recorded

CASES = Path(__file__).parents[1] / "cases"
ENVIRONMENT = "env-test-01"
PREFIX = "00000000-0000-4000-8000-0000000000"
#: The recorded ids of these operations are no hexadecimal numbers, and so no UUIDs.
RENAMED = {"g1": "91", "h1": "81", "h2": "82"}


def text_of(path: Path) -> str:
    """A recorded file, with ids that are UUIDs."""
    text = path.read_text()
    for name, number in RENAMED.items():
        text = text.replace(f"{PREFIX}{name}", f"{PREFIX}{number}")
    return text


def webhook(name: str) -> bytes:
    """The body of the webhook whose file begins with this name."""
    (path,) = (CASES / "webhooks").glob(f"{name}_*.json")
    return text_of(path).encode()


def provider_answer(name: str) -> Recorded:
    """The provider's answer whose file begins with this name."""
    (path,) = (CASES / "provider_answers").glob(f"{name}_*.json")
    recorded = json.loads(text_of(path))
    return recorded["http_status"], recorded["headers"], recorded["body"]


def operation_id(name: str) -> UUID:
    """The id of a recorded operation, named by its last two characters."""
    return UUID(PREFIX + RENAMED.get(name, name))


@dataclass(frozen=True)
class Recording:
    """One row of operations.json."""

    row: dict[str, Any]

    @classmethod
    def named(cls, name: str) -> "Recording":
        rows = json.loads((CASES / "operations.json").read_text())["operations"]
        return cls(next(row for row in rows if row["op"] == PREFIX + name))

    @property
    def id(self) -> UUID:
        return operation_id(self.row["op"][-2:])

    def insert(self, *, is_open: bool = False) -> Operation:
        """The operation in its recorded state, reached as the transition table allows."""
        account = _account(self.row["account"])
        now = datetime.now(UTC) - timedelta(hours=1)
        payment = Payment.objects.create(
            account=account,
            charge=self.row["charge"],
            payment_intent=self.row["payment_intent"],
            currency=self.row["currency"],
            captured=self.row["amount_minor"] * 4,
            refunded=0,
            read_at=now,
        )
        operation = Operation.objects.create(
            id=self.id,
            account=account,
            payment=payment,
            order_id=f"order-{self.row['op'][-2:]}",
            amount=self.row["amount_minor"],
            currency=self.row["currency"],
            input_hash="0" * 64,
            environment=self.row["env"],
            endpoint="/v1/refunds",
            idempotency_key=f"recon-{self.id}",
            parameters={"charge": self.row["charge"], "amount": self.row["amount_minor"]},
            created_at=now,
        )
        if not is_open:
            self._bring_to_its_state(operation, now)
        return operation

    def _bring_to_its_state(self, operation: Operation, now: datetime) -> None:
        refund = self.row["provider_refund_id"] or ""
        match self.row["state"]:
            case "unknown":
                _leave_undecided(operation, now)
            case "pending":
                self._show(operation, "pending", now)
                operation.take(
                    Fact.PROVIDER_PENDING,
                    now=now,
                    provider_object_id=refund,
                    provider_status="pending",
                )
            case "succeeded":
                self._show(operation, "succeeded", now)
                operation.take(
                    Fact.PROVIDER_SUCCEEDED,
                    now=now,
                    provider_object_id=refund,
                    provider_status="succeeded",
                )
            case "closed_failed_by_operator":
                _leave_undecided(operation, now)
                operation.take(Fact.CLOSED_FAILED, now=now, failure_code="closed_by_person")
            case other:
                raise AssertionError(other)

    def _show(self, operation: Operation, status: str, now: datetime) -> None:
        facts = RefundFacts(
            id=self.row["provider_refund_id"],
            status=status,
            amount=self.row["amount_minor"],
            currency=self.row["currency"],
            charge=self.row["charge"],
            payment_intent=self.row["payment_intent"],
        )
        learned = Learned(
            source=EvidenceSource.LOOKUP, summary="Looked.", actor=LOOKUP_JOB, observed_at=now
        )
        see_refund(lock(operation.pk).account, facts, operation=operation, learned=learned, now=now)


def _leave_undecided(operation: Operation, now: datetime) -> None:
    operation.take(
        Fact.LEFT_UNDECIDED,
        now=now,
        unknown_reason=UnknownReason.BUDGET_SPENT,
        last_sent_at=now,
        next_check_at=now,
    )


def _account(name: str | None) -> Account:
    return Account.objects.get_or_create(
        name="connected" if name else "default",
        livemode=False,
        defaults={"provider_account": name or ""},
    )[0]
