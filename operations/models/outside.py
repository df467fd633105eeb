"""What people found to be made outside, and totals that no known refund explains."""

import pgtrigger
from django.db import models
from django.db.models import F, Q

from operations.models.payment import Payment
from operations.models.provider_refund import ProviderRefund
from operations.models.triggers import append_only, never_removed


class MadeOutside(models.Model):
    """A person's finding that a refund was made by somebody else. Times in UTC.

    It counts as others' against the payment before and after; only the question is answered.
    """

    refund = models.OneToOneField(
        ProviderRefund, on_delete=models.PROTECT, related_name="made_outside"
    )
    reason = models.TextField()
    found_by = models.CharField(max_length=255)
    found_by_name = models.CharField(max_length=255)
    found_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(reason="") & ~Q(found_by=""), name="made_outside_says_who_and_why"
            ),
        ]
        triggers = [*append_only("made_outside")]

    def __str__(self) -> str:
        return f"{self.refund} was made outside"


class Discrepancy(models.Model):
    """The provider's total is more than all refunds that we know. Amounts in the Stripe unit.

    Closed by a look-up that explains it, or by a person with a reason.
    """

    EXPLAINED = "explained"
    OUTSIDE = "outside"

    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="discrepancies")
    provider_total = models.BigIntegerField()
    known_total = models.BigIntegerField()
    opened_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=16, blank=True, default="")
    closed_by = models.CharField(max_length=255, blank=True, default="")
    closed_by_name = models.CharField(max_length=255, blank=True, default="")
    reason = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["payment"],
                condition=Q(closed_at__isnull=True),
                name="discrepancy_one_open",
            ),
            models.CheckConstraint(
                condition=Q(provider_total__gt=F("known_total")), name="discrepancy_is_more"
            ),
            models.CheckConstraint(
                condition=(
                    Q(closed_at__isnull=True, outcome="")
                    | Q(closed_at__isnull=False, outcome="explained")
                    | (
                        Q(closed_at__isnull=False, outcome="outside")
                        & ~Q(closed_by="")
                        & ~Q(reason="")
                    )
                ),
                name="discrepancy_closing_is_whole",
            ),
        ]
        indexes = [
            # Serves: the list of totals that don't add up.
            models.Index(
                fields=["-opened_at", "-id"],
                condition=Q(closed_at__isnull=True),
                name="discrepancy_open",
            ),
        ]
        triggers = [
            pgtrigger.Protect(
                name="discrepancy_closed_once",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__closed_at__isnull=False),
            ),
            pgtrigger.ReadOnly(name="discrepancy_frozen", fields=["id", "payment", "opened_at"]),
            *never_removed("discrepancy"),
        ]

    def __str__(self) -> str:
        return f"{self.payment}: {self.difference} more than known"

    @property
    def difference(self) -> int:
        """How much the provider counts beyond the refunds that we know."""
        return self.provider_total - self.known_total
