"""What the provider says of a payment, as last read."""

from datetime import datetime

import pgtrigger
from django.db import models
from django.db.models import Q

from operations.domain.answers import PaymentFacts
from operations.models.account import Account


class Payment(models.Model):
    """One charge. Amounts in the Stripe unit of `currency`.

    The row is locked while an operation on this payment is opened, so that two amounts at once
    cannot pass the till together. `refunded_by_others` is what was refunded outside our
    operations when the provider was last read (`read_at`, UTC). `refunds_blocked`: a dispute was
    reported that makes the provider refuse refunds.
    """

    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="payments", db_index=False
    )
    charge = models.CharField(max_length=255)
    payment_intent = models.CharField(max_length=255, blank=True, default="")
    currency = models.CharField(max_length=3)
    captured = models.BigIntegerField()
    refunded = models.BigIntegerField()
    refunded_by_others = models.BigIntegerField(default=0)
    disputed = models.BooleanField(default=False)
    refunds_blocked = models.BooleanField(default=False, db_default=False)
    read_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "charge"], name="payment_once_per_charge"),
            models.CheckConstraint(
                condition=Q(captured__gte=0, refunded__gte=0, refunded_by_others__gte=0),
                name="payment_amounts_not_negative",
            ),
        ]
        indexes = [
            # Serves: a webhook or a caller that names the payment intent.
            models.Index(fields=["account", "payment_intent"], name="payment_by_intent"),
        ]
        triggers = [
            pgtrigger.ReadOnly(name="payment_frozen", fields=["id", "account", "charge"]),
        ]

    def __str__(self) -> str:
        return self.charge

    def refresh(self, facts: PaymentFacts, *, read_at: datetime) -> None:
        """Keep newer figures of the provider. The caller holds the row's lock."""
        if read_at <= self.read_at or facts.charge != self.charge:
            return
        self.captured = facts.captured
        self.refunded = facts.refunded
        self.disputed = facts.disputed
        self.read_at = read_at
        self.save(update_fields=["captured", "refunded", "disputed", "read_at"])
