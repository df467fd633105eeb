"""What happened in each hour, counted: the insights read these rows, never the operations."""

from django.db import models
from django.db.models import Q

from operations.models.account import Account, ApiKey


class Measure(models.TextChoices):
    """What is counted, and what `bucket` means for it."""

    SENDS = "sends", "Operations opened in the hour; bucket: how often each was sent"
    REFUNDS = "refunds", "Operations opened in the hour; bucket: refunds at the provider"
    UNKNOWN = "unknown", "Operations that became unknown in the hour; bucket: 0"
    RESOLVED = "resolved", "Operations settled in the hour; bucket: how long they were unknown"


class HourCount(models.Model):
    """How many operations fall into one bucket. `hour` is the start of an hour in UTC.

    `agent` is the key that opened them, null for none; `reason` why they were unknown, "" where
    that is not the question. Every row follows from the operations and can be made anew.
    """

    hour = models.DateTimeField()
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="+", db_index=False)
    agent = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    reason = models.CharField(max_length=32, blank=True, default="")
    measure = models.CharField(max_length=16)
    bucket = models.PositiveIntegerField()
    count = models.PositiveIntegerField()

    class Meta:
        constraints = [
            # Serves the insights, too: they read a range of hours.
            models.UniqueConstraint(
                fields=["hour", "account", "agent", "reason", "measure", "bucket"],
                nulls_distinct=False,
                name="hour_count_once",
            ),
            models.CheckConstraint(
                condition=Q(measure__in=Measure.values), name="hour_count_measure_known"
            ),
            models.CheckConstraint(condition=Q(count__gt=0), name="hour_count_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}: {self.count} {self.measure} {self.bucket}"


class HourToSum(models.Model):
    """An hour whose counts may have changed."""

    hour = models.DateTimeField(primary_key=True)

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}"


class SummingState(models.Model):
    """How far the job is: the last audit entry and evidence whose hours are marked. One row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    audit_entry = models.BigIntegerField(default=0)
    evidence = models.BigIntegerField(default=0)
    summed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="summing_state_is_one_row"),
        ]

    def __str__(self) -> str:
        return f"summed at {self.summed_at}"
