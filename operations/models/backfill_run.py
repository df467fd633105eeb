"""Fetching events from the provider's own list: one row a run, with how far it is."""

import pgtrigger
from django.db import models
from django.db.models import F, Q

from operations.models.account import Account
from operations.models.triggers import never_removed, no_update_when


class BackfillState(models.TextChoices):
    """How far a run is."""

    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Stopped"


class BackfillRun(models.Model):
    """Events of an account made at or after `since`, read newest first.

    `cursor` is the id of the last event read: a run that was killed goes on after it. `read`
    events were listed, `stored` of them were new to us; the others had come already.
    `claimed_until`: a worker is at it. `failures`: how often in a row the provider could not be
    read.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="backfills")
    since = models.DateTimeField()
    by_itself = models.BooleanField()
    started_by = models.CharField(max_length=255)
    started_at = models.DateTimeField()
    state = models.CharField(max_length=16, default=BackfillState.RUNNING)
    cursor = models.CharField(max_length=255, blank=True, default="")
    pages = models.PositiveIntegerField(default=0)
    read = models.PositiveIntegerField(default=0)
    stored = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    problem = models.CharField(max_length=500, blank=True, default="")
    finished_at = models.DateTimeField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=BackfillState.values), name="backfill_state_known"
            ),
            models.CheckConstraint(condition=Q(stored__lte=F("read")), name="backfill_counts_fit"),
            models.CheckConstraint(
                condition=Q(state=BackfillState.RUNNING, finished_at__isnull=True)
                | (~Q(state=BackfillState.RUNNING) & Q(finished_at__isnull=False)),
                name="backfill_finished_is_whole",
            ),
            models.CheckConstraint(
                condition=~Q(state=BackfillState.FAILED) | ~Q(problem=""),
                name="backfill_stopped_says_why",
            ),
        ]
        indexes = [
            # Serves: the sweep for runs that were left lying.
            models.Index(
                fields=["claimed_until"],
                condition=Q(state=BackfillState.RUNNING),
                name="backfill_running",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="backfill_frozen",
                fields=["id", "account", "since", "by_itself", "started_by", "started_at"],
            ),
            no_update_when(
                "backfill_goes_forward",
                'NEW."read" < OLD."read" OR NEW."stored" < OLD."stored"'
                ' OR NEW."pages" < OLD."pages" OR OLD."state" = \'done\'',
            ),
            *never_removed("backfill"),
        ]

    def __str__(self) -> str:
        return f"{self.account} since {self.since:%Y-%m-%d %H:%M}"
