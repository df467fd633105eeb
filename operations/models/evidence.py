"""What we learned about an operation. Never changed, never deleted."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from operations.domain.audit import ActorKind
from operations.models import collecting
from operations.models.attempt import Attempt
from operations.models.operation import Operation
from operations.models.statements import run
from operations.models.triggers import append_only, fits_its_attempt

#: An expression that draws the id of the next piece of evidence.
NEXT_EVIDENCE_ID = "nextval(pg_get_serial_sequence('operations_evidence', 'id'))"


class EvidenceSource(models.TextChoices):
    """Where a piece of evidence comes from."""

    ANSWER = "answer", "Answer to a send"
    WEBHOOK = "webhook", "Webhook"
    LOOKUP = "lookup", "Look-up"
    REPORT_ROW = "report_row", "Report row"
    STATEMENT = "statement", "A person's statement"


class Evidence(models.Model):
    """One thing we learned. `amount` in the Stripe unit; times in UTC.

    `facts` holds what is particular to the source: for a look-up the completeness of the list
    and what was seen, for a statement the kind and reference that a person gave.
    """

    Source: ClassVar[type[EvidenceSource]] = EvidenceSource

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="evidence", db_index=False
    )
    source = models.CharField(max_length=16)
    attempt = models.ForeignKey(
        Attempt, on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    event = models.ForeignKey(
        "operations.WebhookEvent",
        # Old events are removed; what this evidence rests on is kept in `facts`.
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        null=True,
        blank=True,
        related_name="+",
    )
    provider_object_id = models.CharField(max_length=255, blank=True, default="")
    provider_status = models.CharField(max_length=64, blank=True, default="")
    amount = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True, default="")
    summary = models.CharField(max_length=500)
    facts = models.JSONField(default=dict)
    observed_at = models.DateTimeField()
    recorded_at = models.DateTimeField()
    actor_kind = models.CharField(max_length=16)
    actor_name = models.CharField(max_length=255)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(source__in=EvidenceSource.values),
                name="evidence_source_known",
            ),
            models.CheckConstraint(
                condition=Q(actor_kind__in=sorted(ActorKind)),
                name="evidence_actor_known",
            ),
        ]
        indexes = [
            # Serves: the timeline of an operation.
            models.Index(fields=["operation", "recorded_at"], name="evidence_by_operation"),
        ]
        triggers = [fits_its_attempt(), *append_only("evidence")]

    def __str__(self) -> str:
        return self.summary

    @staticmethod
    def new_id() -> int:
        """The next id, known before the row is sent because an audit entry names it."""
        collected = collecting.current()
        if collected is not None and collected.spare_ids:
            return collected.spare_ids.pop()
        ((drawn,),) = run(f"SELECT {NEXT_EVIDENCE_ID}", [])
        return int(drawn)
