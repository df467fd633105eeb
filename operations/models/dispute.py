"""Every dispute that was reported of a payment, in its newest state."""

import pgtrigger
from django.db import models
from django.db.models import Q

from operations.models.account import Account
from operations.models.triggers import never_removed


class Dispute(models.Model):
    """One dispute. `amount` in the Stripe unit; `as_of` is the time of the report that is kept."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="disputes")
    provider_object_id = models.CharField(max_length=255)
    charge = models.CharField(max_length=255, blank=True, default="")
    payment_intent = models.CharField(max_length=255, blank=True, default="")
    status = models.CharField(max_length=64)
    reason = models.CharField(max_length=255, blank=True, default="")
    amount = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    blocks_refunds = models.BooleanField()
    as_of = models.DateTimeField()
    first_seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "provider_object_id"], name="dispute_once"),
            models.CheckConstraint(condition=~Q(provider_object_id=""), name="dispute_has_an_id"),
        ]
        indexes = [
            # Serves: whether refunds of a payment are refused at the moment.
            models.Index(fields=["account", "charge"], name="dispute_by_charge"),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="dispute_frozen",
                fields=["id", "account", "provider_object_id", "first_seen_at"],
            ),
            *never_removed("dispute"),
        ]

    def __str__(self) -> str:
        return self.provider_object_id
