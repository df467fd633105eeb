"""A closing that waits for a second person."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from operations.domain.closure import ClosingOutcome
from operations.models.operation import Operation


class ProposalState(models.TextChoices):
    """Where a proposal stands."""

    WAITING = "waiting", "Waiting for a second person"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    VOID = "void", "Void: the operation changed"


class Proposal(models.Model):
    """One person's decision, to be approved by another. `revision` is what they saw."""

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="proposals"
    )
    outcome = models.CharField(max_length=16)
    evidence_kind = models.CharField(max_length=32)
    evidence_reference = models.CharField(max_length=255, blank=True, default="")
    note = models.TextField()
    reasons = ArrayField(models.CharField(max_length=32))
    revision = models.PositiveIntegerField()
    state = models.CharField(
        max_length=16, choices=ProposalState.choices, default=ProposalState.WAITING
    )
    proposed_by = models.CharField(max_length=255)
    proposed_by_name = models.CharField(max_length=255)
    proposed_at = models.DateTimeField()
    decided_by = models.CharField(max_length=255, blank=True, default="")
    decided_by_name = models.CharField(max_length=255, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    decision_note = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["operation"],
                condition=Q(state=ProposalState.WAITING),
                name="proposal_one_waiting",
            ),
            models.CheckConstraint(
                condition=Q(outcome__in=sorted(ClosingOutcome)),
                name="proposal_outcome_known",
            ),
            # Nobody is his own second person.
            models.CheckConstraint(
                condition=~Q(state=ProposalState.APPROVED)
                | ~Q(decided_by=F("proposed_by")),
                name="proposal_two_people",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} proposed by {self.proposed_by_name}"
