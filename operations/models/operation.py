"""The operation: one refund that the business wants done, and the only code that changes it."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q

from operations.domain.identity import KIND_REFUND
from operations.domain.matching import RefundTerms
from operations.domain.money import Money
from operations.domain.statuses import (
    SETTLED,
    UNRESOLVED,
    Fact,
    Status,
    UnknownReason,
    transition,
)
from operations.models import collecting
from operations.models.account import Account, ApiKey
from operations.models.operation_guard import OPERATION_GUARD
from operations.models.payment import Payment
from operations.models.triggers import never_removed

_UNRESOLVED = sorted(UNRESOLVED)
_SETTLED = sorted(SETTLED)
#: When to look and to send next. A change of these alone says nothing about the refund.
_PLAN = ("lookups_made", "next_check_at", "next_send_at")
_IS_UNKNOWN = Q(status=Status.UNKNOWN)


def _by_urgency(name: str, condition: Q, *within: str) -> models.Index:
    """An index of a part of the queue: key deadline with none last, amount falling.

    The amount is negated, not sorted downwards: then a page begins after one comparison of rows.
    """
    return models.Index(
        *(F(field) for field in within),
        F("key_window_closes_at").asc(nulls_last=True),
        (-F("amount")).asc(),
        F("id").asc(),
        condition=condition,
        name=name,
    )


class StaleOperation(Exception):
    """Somebody was faster: the row is not at the revision that was read. Nothing was changed."""

    def __init__(self, operation_id: UUID) -> None:
        self.operation_id = operation_id
        super().__init__(f"Operation {operation_id} has changed since it was read.")


class Operation(models.Model):
    """One refund, one idempotency key, one row. `amount` in the Stripe unit; times in UTC.

    The first block is frozen when the row is made. A status is written by `take` only; every
    other change goes through `change`. Both compare the revision that was read.
    """

    id = models.UUIDField(primary_key=True)
    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="operations", db_index=False
    )
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="operations")
    opened_by = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    group = models.UUIDField(null=True, blank=True)
    reissue_of = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="reissues",
        db_index=False,
    )
    kind = models.CharField(max_length=16, default=KIND_REFUND)
    order_id = models.CharField(max_length=255)
    reference = models.CharField(max_length=255, blank=True, default="")
    customer_account = models.CharField(max_length=255, blank=True, default="")
    amount = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    reason = models.CharField(max_length=500, blank=True, default="")
    input_hash = models.CharField(max_length=64)
    environment = models.CharField(max_length=64)
    endpoint = models.CharField(max_length=64)
    idempotency_key = models.CharField(max_length=255)
    parameters = models.JSONField()
    created_at = models.DateTimeField()

    status = models.CharField(max_length=16, default=Status.OPEN)
    unknown_reason = models.CharField(max_length=32, blank=True, default="")
    attention = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    failure_code = models.CharField(max_length=100, blank=True, default="")
    failure_message = models.CharField(max_length=500, blank=True, default="")
    provider_object_id = models.CharField(max_length=255, blank=True, default="")
    provider_status = models.CharField(max_length=64, blank=True, default="")

    attempts_made = models.PositiveIntegerField(default=0)
    lookups_made = models.PositiveIntegerField(default=0)
    first_sent_at = models.DateTimeField(null=True, blank=True)
    last_sent_at = models.DateTimeField(null=True, blank=True)
    key_window_closes_at = models.DateTimeField(null=True, blank=True)
    next_send_at = models.DateTimeField(null=True, blank=True)
    next_check_at = models.DateTimeField(null=True, blank=True)
    needs_person_since = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    lease_owner = models.CharField(max_length=128, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    revision = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            # Serves the search box and webhooks, too, which know the key alone.
            models.UniqueConstraint(
                fields=["idempotency_key", "account"], name="operation_key_once"
            ),
            # The database picks the winner of two requests for one refund.
            models.UniqueConstraint(
                fields=["account", "order_id", "reference"],
                condition=Q(status__in=_UNRESOLVED),
                name="operation_one_unresolved",
            ),
            models.UniqueConstraint(
                fields=["provider_object_id", "account"],
                condition=~Q(provider_object_id=""),
                name="operation_one_provider_object",
            ),
            models.CheckConstraint(
                condition=Q(status__in=sorted(Status)), name="operation_status_known"
            ),
        ]
        indexes = [
            # Serves: the queue of what is unknown, by key deadline and then amount.
            _by_urgency("operation_unknown_queue", _IS_UNKNOWN),
            # Serve: the same, narrowed to a reason, an account or an agent.
            _by_urgency("operation_unknown_by_reason", _IS_UNKNOWN, "unknown_reason"),
            _by_urgency("operation_unknown_by_account", _IS_UNKNOWN, "account"),
            _by_urgency("operation_unknown_by_agent", _IS_UNKNOWN, "opened_by"),
            # Serves: the queue of what carries a flag.
            _by_urgency("operation_flagged_queue", ~Q(attention=[])),
            # Serves: all operations with a flag, by age.
            models.Index(
                fields=["-created_at", "-id"],
                condition=~Q(attention=[]),
                name="operation_flagged_by_age",
            ),
            # Serves: what needs a person, by how long it has.
            models.Index(
                fields=["needs_person_since", "id"],
                condition=Q(needs_person_since__isnull=False),
                name="operation_waiting_by_age",
            ),
            # Serves: the same by amount, which means something within a currency only.
            models.Index(
                F("currency").asc(),
                (-F("amount")).asc(),
                F("id").asc(),
                condition=Q(needs_person_since__isnull=False),
                name="operation_waiting_by_amount",
            ),
            # Serves: lists by age with a status that is not the usual one. An operation that goes
            # well never enters it.
            models.Index(
                fields=["status", "-created_at", "-id"],
                condition=Q(status__in=[Status.FAILED, Status.PROCESSING, Status.UNKNOWN]),
                name="operation_by_status",
            ),
            # Serves: how long the oldest unknown operation has waited.
            models.Index(
                fields=["needs_person_since"],
                condition=Q(status=Status.UNKNOWN),
                name="operation_unknown_since",
            ),
            # Serves: the sweep that looks for due checks and background sends. Hardly any settled
            # operation has a check before it: what was told of it is in doubt.
            models.Index(
                fields=["next_check_at"],
                condition=Q(next_check_at__isnull=False),
                name="operation_due",
            ),
            # Serves: the sweep that looks for leases that ran out.
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(lease_expires_at__isnull=False),
                name="operation_leases",
            ),
            # Serves: the question whether a request repeats another one; the search box.
            models.Index(fields=["order_id", "reference"], name="operation_identity"),
            # Serves: how much is unknown, for an account, an agent or a customer.
            models.Index(
                fields=["account", "opened_by", "customer_account"],
                condition=Q(status=Status.UNKNOWN),
                name="operation_exposure",
            ),
            # Serves: the answer about a group.
            models.Index(
                fields=["group"], condition=Q(group__isnull=False), name="operation_by_group"
            ),
            # Serves: the way from a failed operation to the one made in its place.
            models.Index(
                fields=["reissue_of"],
                condition=Q(reissue_of__isnull=False),
                name="operation_by_reissued",
            ),
            # Serves: lists by age.
            models.Index(fields=["-created_at", "-id"], name="operation_by_age"),
            # Serves: the filter by flag. Hardly any operation has one.
            GinIndex(
                fields=["attention"],
                condition=~Q(attention=[]),
                name="operation_by_attention",
            ),
        ]
        triggers = [OPERATION_GUARD, *never_removed("operation")]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def money(self) -> Money:
        """The amount with its currency."""
        return Money(self.amount, self.currency)

    def terms(self) -> RefundTerms:
        """What a refund at the provider must show to be this operation's."""
        # Every report of a refund asks several times, and all but the intent is frozen.
        kept: RefundTerms | None = self.__dict__.get("_terms")
        payment, account = self.payment, self.account
        if kept is not None and kept.payment_intent == payment.payment_intent:
            return kept
        terms = RefundTerms(
            operation_id=str(self.id),
            environment=self.environment,
            amount=self.amount,
            currency=self.currency,
            charge=payment.charge,
            payment_intent=payment.payment_intent,
            account=account.provider_account,
            livemode=account.livemode,
        )
        self.__dict__["_terms"] = terms
        return terms

    def is_leased(self, now: datetime) -> bool:
        """Whether a send is in flight, or its holder may still come back."""
        return self.lease_expires_at is not None and self.lease_expires_at > now

    def snapshot(self) -> dict[str, Any]:
        """What audit entries show as before and after."""
        return {
            "status": str(self.status),
            "unknown_reason": str(self.unknown_reason),
            "attention": sorted(str(flag) for flag in self.attention),
            "provider_object_id": self.provider_object_id,
            "provider_status": self.provider_status,
            "failure_code": self.failure_code,
        }

    def take(
        self,
        fact: Fact,
        *,
        now: datetime,
        unknown_reason: UnknownReason | None = None,
        raises: bool = True,
        **fields: Any,
    ) -> None:
        """Let a fact change the status as the transition table says, with `fields` beside it.

        `raises`: whether the flag that the table asks for is set; not for a fact that raised it
        before.

        Raises TransitionRefused for a cell that is not in the table, StaleOperation when the row
        has moved on (RowMoved at the end of a transaction that collects its writes). The caller
        holds the row's lock.
        """
        step = transition(Status(self.status), fact)
        moved = step.to != self.status
        attention = fields.pop("attention", list(self.attention))
        if raises and step.attention and step.attention not in attention:
            attention = [*attention, step.attention]
        if moved:
            fields["settled_at"] = now if step.to in SETTLED else None
        reason = self.unknown_reason
        if moved:
            reason = unknown_reason or "" if step.to is Status.UNKNOWN else ""
        self._write(now, status=step.to, unknown_reason=reason, attention=attention, **fields)

    def change(self, *, now: datetime, **fields: Any) -> None:
        """Change anything but the status, compare-and-set on the revision.

        Raises StaleOperation when the row has moved on.
        """
        if "status" in fields:
            raise ValueError("A status is written by Operation.take only.")
        self._write(now, **fields)

    def plan(self, *, now: datetime, **fields: Any) -> None:
        """Change only when to look or send next.

        The revision stays: whoever is deciding on what they saw still sees all that matters.
        Raises StaleOperation when the row has moved on.
        """
        if not set(fields) <= set(_PLAN):
            raise ValueError("A plan has times and counts only.")
        self._write(now, counts=False, **fields)

    def _write(self, now: datetime, *, counts: bool = True, **fields: Any) -> None:
        status = fields.get("status", self.status)
        attention = fields.get("attention", self.attention)
        needs_person = status == Status.UNKNOWN or bool(attention)
        if needs_person and self.needs_person_since is None:
            fields["needs_person_since"] = now
        elif not needs_person and self.needs_person_since is not None:
            fields["needs_person_since"] = None
        read_at = self.revision
        for name, value in fields.items():
            setattr(self, name, value)
        if counts and not collecting.is_counted(self):
            self.revision += 1
        try:
            collecting.update(self, [*fields, "revision"], revision=read_at)
        except collecting.RowMoved:
            raise StaleOperation(self.pk) from None
