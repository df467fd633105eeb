"""Seals over the audit trail that were made, without the heads that they cover."""

from django.db import models
from django.db.models import Q

from operations.domain.seals import FIRST, Seal, SignedSeal
from operations.models.triggers import append_only, seal_follows_the_last


class AuditSeal(models.Model):
    """One seal: numbered from 1, tied to the one before by its digest, signed."""

    number = models.PositiveIntegerField(unique=True)
    sealed_at = models.DateTimeField()
    environment = models.CharField(max_length=64)
    chains = models.PositiveBigIntegerField()
    entries = models.PositiveBigIntegerField()
    heads_digest = models.CharField(max_length=64)
    previous_digest = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    signature = models.CharField(max_length=128)
    public_key = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(number__gte=1) & ~Q(signature="") & ~Q(digest=""),
                name="audit_seal_is_signed",
            ),
        ]
        triggers = [seal_follows_the_last(first=FIRST), *append_only("audit_seal")]

    def __str__(self) -> str:
        return f"Seal {self.number}"

    def signed(self) -> SignedSeal:
        """The seal as it was signed."""
        seal = Seal(
            number=self.number,
            at=self.sealed_at.isoformat(),
            environment=self.environment,
            chains=self.chains,
            entries=self.entries,
            heads=self.heads_digest,
            previous=self.previous_digest,
        )
        return SignedSeal(seal, self.signature, self.public_key)
