"""The history of a refund at the provider: what was reported of it, by whom, and when."""

from django.db import models
from django.db.models import Q

from operations.models.evidence import EvidenceSource
from operations.models.provider_refund import ProviderRefund
from operations.models.triggers import append_only


class RefundReport(models.Model):
    """One thing that was said of a refund; the same said again leaves no second row.

    `amount` in the Stripe unit. `told_at` is the provider's time for what an event says, ours for
    everything else; `recorded_at` is ours. `told_by` is the id of the event or the attempt, or
    who looked. `details` holds what Stripe adds to a status, as text.
    """

    refund = models.ForeignKey(
        ProviderRefund, on_delete=models.PROTECT, related_name="reports", db_index=False
    )
    source = models.CharField(max_length=16)
    told_by = models.CharField(max_length=255)
    status = models.CharField(max_length=64)
    amount = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    details = models.JSONField(default=dict)
    told_at = models.DateTimeField()
    recorded_at = models.DateTimeField()
    #: Equal for two reports of which one says nothing that the other does not.
    fingerprint = models.CharField(max_length=32)

    class Meta:
        constraints = [
            # Serves the timeline of a refund, too, and every other way from a refund.
            models.UniqueConstraint(fields=["refund", "fingerprint"], name="refund_report_once"),
            models.CheckConstraint(
                condition=Q(source__in=EvidenceSource.values), name="refund_report_source_known"
            ),
        ]
        triggers = [*append_only("refund_report")]

    def __str__(self) -> str:
        return f"{self.told_at}: {self.status}"
