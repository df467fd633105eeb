"""One HTTP send to the provider, written and committed before the bytes leave."""

import pgtrigger
from django.db import models
from django.db.models import Q

from operations.domain.answers import AnswerKind
from operations.domain.classify import Doubt, Outcome
from operations.models.operation import Operation
from operations.models.triggers import fits_its_operation, never_removed


class Attempt(models.Model):
    """Write-once: `outcome` is "" until the answer is saved, and then nothing changes any more.

    `fence` is the lease under which it was sent. `duration_ms` in milliseconds, times in UTC.
    `reading` keeps the refund of an accepted answer for the decision rule.
    """

    id = models.UUIDField(primary_key=True)
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="attempts", db_index=False
    )
    number = models.PositiveIntegerField()
    idempotency_key = models.CharField(max_length=255)
    parameters = models.JSONField()
    fence = models.CharField(max_length=128)
    started_at = models.DateTimeField()

    outcome = models.CharField(max_length=16, blank=True, default="")
    doubt = models.CharField(max_length=16, blank=True, default="")
    attention = models.CharField(max_length=32, blank=True, default="")
    answer_kind = models.CharField(max_length=16, blank=True, default="")
    finished_at = models.DateTimeField(null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    provider_request_id = models.CharField(max_length=255, blank=True, default="")
    replayed = models.BooleanField(default=False)
    should_retry = models.BooleanField(null=True, blank=True)
    retry_after_s = models.FloatField(null=True, blank=True)
    error_type = models.CharField(max_length=100, blank=True, default="")
    error_code = models.CharField(max_length=100, blank=True, default="")
    message = models.CharField(max_length=500, blank=True, default="")
    body = models.JSONField(null=True, blank=True)
    refund = models.JSONField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["operation", "number"], name="attempt_number_once"),
            # One send in flight per operation, whatever the leases say.
            models.UniqueConstraint(
                fields=["operation"],
                condition=Q(outcome=""),
                name="attempt_one_in_flight",
            ),
            models.CheckConstraint(
                condition=Q(outcome__in=["", *sorted(Outcome)]),
                name="attempt_outcome_known",
            ),
            models.CheckConstraint(
                condition=Q(doubt__in=sorted(Doubt)), name="attempt_doubt_known"
            ),
            models.CheckConstraint(
                condition=Q(answer_kind__in=["", *sorted(AnswerKind)]),
                name="attempt_answer_known",
            ),
            # In flight nothing is known; once it is over, when and how it ended.
            models.CheckConstraint(
                condition=(
                    Q(
                        outcome="",
                        doubt="",
                        attention="",
                        answer_kind="",
                        finished_at__isnull=True,
                        duration_ms__isnull=True,
                        http_status__isnull=True,
                        provider_request_id="",
                        replayed=False,
                        should_retry__isnull=True,
                        retry_after_s__isnull=True,
                        error_type="",
                        error_code="",
                        message="",
                        body__isnull=True,
                        refund__isnull=True,
                    )
                    | (~Q(outcome="") & ~Q(answer_kind="") & Q(finished_at__isnull=False))
                ),
                name="attempt_finished_is_whole",
            ),
            # An accepted attempt keeps the refund that the decision rests on.
            models.CheckConstraint(
                condition=~Q(outcome=Outcome.ACCEPTED) | Q(refund__isnull=False),
                name="attempt_accepted_keeps_the_refund",
            ),
        ]
        indexes = [
            # Serves: the search box.
            models.Index(
                fields=["provider_request_id"],
                condition=~Q(provider_request_id=""),
                name="attempt_by_request_id",
            ),
        ]
        triggers = [
            pgtrigger.Protect(
                name="attempt_starts_in_flight",
                operation=pgtrigger.Insert,
                condition=~pgtrigger.Q(new__outcome=""),
            ),
            fits_its_operation(),
            pgtrigger.Protect(
                name="attempt_written_once",
                operation=pgtrigger.Update,
                condition=~pgtrigger.Q(old__outcome=""),
            ),
            pgtrigger.ReadOnly(
                name="attempt_frozen",
                fields=[
                    "id",
                    "operation",
                    "number",
                    "idempotency_key",
                    "parameters",
                    "fence",
                    "started_at",
                ],
            ),
            *never_removed("attempt"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number}"
