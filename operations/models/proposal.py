"""A closing that waits for a second person."""

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from operations.domain.closure import REOPENED, ClosingOutcome, EvidenceKind, ReopenGround
from operations.models.operation import Operation
from operations.models.triggers import never_removed


class ProposalState(models.TextChoices):
    """Where a proposal stands."""

    WAITING = "waiting", "Waiting for a second person"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    VOID = "void", "Void: the operation changed"


class Proposal(models.Model):
    """One person's decision, to be approved by another. `revision` is what they saw.

    What was proposed is frozen, and so is the row once it is decided. The outcome `unknown` takes a
    closing back, and its evidence is the ground for that. `form_token` names the form it came with.
    """

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="proposals")
    outcome = models.CharField(max_length=16)
    evidence_kind = models.CharField(max_length=32)
    evidence_reference = models.CharField(max_length=255, blank=True, default="")
    note = models.TextField()
    reasons = ArrayField(models.CharField(max_length=32))
    revision = models.PositiveIntegerField()
    form_token = models.CharField(max_length=36, blank=True, default="", db_default="")
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
                condition=Q(outcome__in=[*sorted(ClosingOutcome), REOPENED]),
                name="proposal_outcome_known",
            ),
            models.CheckConstraint(
                condition=Q(evidence_kind__in=[*sorted(EvidenceKind), *sorted(ReopenGround)]),
                name="proposal_evidence_known",
            ),
            models.CheckConstraint(
                condition=Q(outcome=REOPENED, evidence_kind__in=sorted(ReopenGround))
                | (~Q(outcome=REOPENED) & ~Q(evidence_kind__in=sorted(ReopenGround))),
                name="proposal_evidence_fits_its_outcome",
            ),
            # The same form sent twice is one proposal.
            models.UniqueConstraint(
                fields=["form_token"], condition=~Q(form_token=""), name="proposal_form_once"
            ),
            # Waiting, void because the operation changed, or decided by somebody.
            models.CheckConstraint(
                condition=(
                    Q(
                        state=ProposalState.WAITING,
                        decided_by="",
                        decided_at__isnull=True,
                    )
                    | Q(state=ProposalState.VOID, decided_at__isnull=False)
                    | (
                        Q(state__in=[ProposalState.APPROVED, ProposalState.REJECTED])
                        & ~Q(decided_by="")
                        & Q(decided_at__isnull=False)
                    )
                ),
                name="proposal_decision_is_whole",
            ),
            # Nobody is his own second person.
            models.CheckConstraint(
                condition=~Q(state=ProposalState.APPROVED) | ~Q(decided_by=F("proposed_by")),
                name="proposal_two_people",
            ),
        ]
        triggers = [
            pgtrigger.Protect(
                name="proposal_starts_waiting",
                operation=pgtrigger.Insert,
                condition=~pgtrigger.Q(new__state=ProposalState.WAITING.value),
            ),
            pgtrigger.Protect(
                name="proposal_decided_once",
                operation=pgtrigger.Update,
                condition=~pgtrigger.Q(old__state=ProposalState.WAITING.value),
            ),
            pgtrigger.ReadOnly(
                name="proposal_frozen",
                fields=[
                    "id",
                    "operation",
                    "outcome",
                    "evidence_kind",
                    "evidence_reference",
                    "note",
                    "reasons",
                    "revision",
                    "form_token",
                    "proposed_by",
                    "proposed_by_name",
                    "proposed_at",
                ],
            ),
            *never_removed("proposal"),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} proposed by {self.proposed_by_name}"

    @property
    def reopens(self) -> bool:
        """Whether it takes a closing back."""
        return self.outcome == REOPENED
