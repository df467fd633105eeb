"""Who is working on an operation, for a while."""

import pgtrigger
from django.db import models
from django.db.models import F, Q

from operations.domain.claims import CLAIM_LEASE
from operations.models.operation import Operation


class Claim(models.Model):
    """One person works on one operation until `expires_at`. Times in UTC.

    There is no row, or one that has run out, when nobody does. What happened to a claim stands in
    the audit trail of its operation; `taken_reason` is why it was taken from somebody who held it.
    """

    operation = models.OneToOneField(
        Operation, on_delete=models.PROTECT, primary_key=True, related_name="claim"
    )
    holder = models.CharField(max_length=255)
    holder_name = models.CharField(max_length=255)
    claimed_at = models.DateTimeField()
    renewed_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    taken_reason = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(holder=""), name="claim_has_a_holder"),
            # Nobody holds a claim without being heard of.
            models.CheckConstraint(
                condition=Q(renewed_at__gte=F("claimed_at"))
                & Q(expires_at__gt=F("renewed_at"))
                & Q(expires_at__lte=F("renewed_at") + CLAIM_LEASE),
                name="claim_runs_out",
            ),
        ]
        indexes = [
            # Serves: what a person has claimed, and who has claimed anything.
            models.Index(fields=["holder", "expires_at"], name="claim_by_holder"),
        ]
        triggers = [
            pgtrigger.Protect(
                name="claim_taken_with_a_reason",
                operation=pgtrigger.Update,
                condition=pgtrigger.Condition(
                    'OLD."holder" <> NEW."holder" AND OLD."expires_at" > NEW."claimed_at"'
                    " AND NEW.\"taken_reason\" = ''"
                ),
            ),
            pgtrigger.ReadOnly(name="claim_frozen", fields=["operation"]),
        ]

    def __str__(self) -> str:
        return f"{self.operation_id}, claimed by {self.holder_name}"
