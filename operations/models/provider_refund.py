"""Every refund we ever saw at the provider, ours or not, in its furthest state."""

import pgtrigger
from django.db import models
from django.db.models import Q

from operations.domain.answers import RefundFacts
from operations.models.account import Account
from operations.models.operation import Operation
from operations.models.triggers import (
    never_removed,
    no_update_when,
    refund_fits_its_operation,
)


class ProviderRefund(models.Model):
    """One refund object. `amount` in the Stripe unit; `status` is the furthest ever reported.

    `operation` is the first one that it was proven to belong to, for good; none that it
    contradicts. `details` are the newest of each as [UTC seconds, text]; `status_since` is when the
    status was first reported, by the provider's clock where an event said so.
    """

    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="refunds", db_index=False
    )
    operation = models.ForeignKey(
        Operation,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="refunds",
    )
    provider_object_id = models.CharField(max_length=255)
    status = models.CharField(max_length=64)
    amount = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    charge = models.CharField(max_length=255, blank=True, default="")
    payment_intent = models.CharField(max_length=255, blank=True, default="")
    metadata = models.JSONField(default=dict)
    details = models.JSONField(default=dict)
    status_since = models.DateTimeField(null=True, blank=True)
    provider_created_at = models.DateTimeField(null=True, blank=True)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["account", "provider_object_id"], name="provider_refund_once"
            ),
            models.CheckConstraint(
                condition=~Q(provider_object_id=""), name="provider_refund_has_an_id"
            ),
        ]
        indexes = [
            # Serves: the refunds of one payment, for the till and the comparison.
            models.Index(fields=["account", "charge"], name="provider_refund_by_charge"),
            # Serves: the refunds that belong to no operation, newest first.
            models.Index(
                fields=["-first_seen_at", "-id"],
                condition=Q(operation__isnull=True),
                name="provider_refund_orphans",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="provider_refund_frozen",
                fields=[
                    "id",
                    "account",
                    "provider_object_id",
                    "amount",
                    "currency",
                    "first_seen_at",
                ],
            ),
            no_update_when(
                "provider_refund_owner_kept",
                'OLD."operation_id" IS NOT NULL'
                ' AND NEW."operation_id" IS DISTINCT FROM OLD."operation_id"',
            ),
            refund_fits_its_operation(),
            *never_removed("provider_refund"),
        ]

    def __str__(self) -> str:
        return self.provider_object_id

    def detail(self, name: str) -> str:
        """The newest text that was told under this name; "" for none."""
        return str(self.details[name][1]) if name in self.details else ""

    def as_facts(self) -> RefundFacts:
        """The refund as the rules see it, in its furthest state."""
        created = self.provider_created_at
        return RefundFacts(
            id=self.provider_object_id,
            status=self.status,
            amount=self.amount,
            currency=self.currency,
            charge=self.charge,
            payment_intent=self.payment_intent,
            created=int(created.timestamp()) if created else 0,
            metadata=self.metadata,
        )
