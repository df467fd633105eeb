"""One HTTP send to the provider, written and committed before the bytes leave."""

from django.db import models
from django.db.models import Q

from operations.models.attempt_guard import ATTEMPT_GUARD
from operations.models.operation import Operation
from operations.models.triggers import never_removed


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
        ]
        indexes = [
            # Serves: the search box.
            models.Index(
                fields=["provider_request_id"],
                condition=~Q(provider_request_id=""),
                name="attempt_by_request_id",
            ),
        ]
        triggers = [ATTEMPT_GUARD, *never_removed("attempt")]

    def __str__(self) -> str:
        return f"attempt {self.number}"
