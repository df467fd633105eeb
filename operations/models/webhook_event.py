"""Events as they came, filed by month. What became of them stands in `inbox`."""

from datetime import UTC, datetime

import pgtrigger
from django.db import models
from django.db.models import F, Q

from operations.models.triggers import never_removed

#: Where events are filed whose own time can't be read or is out of all reason.
NO_MONTH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MONTH = datetime(2011, 1, 1, tzinfo=UTC)
_LAST_MONTH = datetime(2100, 1, 1, tzinfo=UTC)


def filed_at(created: datetime | None) -> datetime:
    """Where an event is filed: by its own time, which is the same in every delivery of it."""
    return created if created and _FIRST_MONTH <= created < _LAST_MONTH else NO_MONTH


class WebhookEvent(models.Model):
    """One event, once per account and event id. Times in UTC.

    `raw` is the durable copy; `payload` is it parsed (NUL characters replaced, because jsonb
    holds none). `endpoint_account` is the account named in the address it was posted to.

    The table is partitioned by the month of `filed_at`, and its primary key in the database is
    (id, filed_at). Old months are dropped whole, so nothing refers to an event by a constraint:
    whoever needs a fact of it later keeps that fact.
    """

    endpoint_account = models.CharField(max_length=64, blank=True, default="")
    event_account = models.CharField(max_length=64, blank=True, default="")
    event_id = models.CharField(max_length=255)
    event_type = models.CharField(max_length=255)
    livemode = models.BooleanField(null=True, blank=True)
    provider_created_at = models.DateTimeField(null=True, blank=True)
    filed_at = models.DateTimeField()
    raw = models.BinaryField()
    payload = models.JSONField()
    received_at = models.DateTimeField()
    last_received_at = models.DateTimeField()
    #: 0: fetched from the provider's own list by the run `backfill`, and never delivered.
    deliveries = models.PositiveIntegerField(default=1)
    backfill = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            # By id first: it also serves whoever asks for an event by its id alone.
            models.UniqueConstraint(
                fields=["event_id", "event_account", "filed_at"], name="webhook_event_once"
            ),
            models.CheckConstraint(condition=~Q(event_id=""), name="webhook_event_has_an_id"),
        ]
        indexes = [
            # Serves: when an account was last heard.
            models.Index("event_account", F("id").desc(), name="webhook_event_by_account"),
            # Serves: what the events that a run fetched came to.
            models.Index(
                fields=["backfill"],
                condition=Q(backfill__isnull=False),
                name="webhook_event_by_backfill",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="webhook_event_frozen",
                fields=[
                    "id",
                    "endpoint_account",
                    "event_account",
                    "event_id",
                    "event_type",
                    "livemode",
                    "provider_created_at",
                    "filed_at",
                    "raw",
                    "payload",
                    "received_at",
                    "backfill",
                ],
            ),
            *never_removed("webhook_event"),
        ]

    def __str__(self) -> str:
        return self.event_id
