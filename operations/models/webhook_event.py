"""The inbox: events as they came. Received and handled are two facts."""

from datetime import datetime

import pgtrigger
from django.db import models
from django.db.models import Q

from operations.models.operation import Operation
from operations.models.triggers import never_removed


class Handling(models.TextChoices):
    """What became of an event. "" while it waits."""

    WAITING = "", "Waiting"
    APPLIED = "applied", "Matched an operation"
    NO_CHANGE = "no_change", "Matched, nothing new"
    NEEDS_LOOKUP = "needs_lookup", "Matched by request key, look-up asked for"
    UNMATCHED = "unmatched", "Carries our mark, no such operation yet"
    NOT_OURS = "not_ours", "Not ours"
    OTHER_ENVIRONMENT = "other_environment", "Another environment's"
    WRONG_MODE = "wrong_mode", "Another mode's"
    MISMATCH = "mismatch", "Claims an operation but differs"
    IGNORED = "ignored", "Nothing to do for this type"


class WebhookEvent(models.Model):
    """One event, once per account and event id. Times in UTC.

    `raw` is the durable copy; `payload` is it parsed (NUL characters replaced, because jsonb
    holds none). `endpoint_account` is the account named in the address it was posted to.
    """

    endpoint_account = models.CharField(max_length=64, blank=True, default="")
    event_account = models.CharField(max_length=64, blank=True, default="")
    event_id = models.CharField(max_length=255)
    event_type = models.CharField(max_length=255)
    livemode = models.BooleanField(null=True, blank=True)
    provider_created_at = models.DateTimeField(null=True, blank=True)
    raw = models.BinaryField()
    payload = models.JSONField()
    received_at = models.DateTimeField()
    last_received_at = models.DateTimeField()
    deliveries = models.PositiveIntegerField(default=1)

    handling = models.CharField(max_length=32, blank=True, default="")
    handled_at = models.DateTimeField(null=True, blank=True)
    handling_attempts = models.PositiveIntegerField(default=0)
    handle_after = models.DateTimeField()
    handling_error = models.CharField(max_length=500, blank=True, default="")
    operation = models.ForeignKey(
        Operation,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="events",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event_account", "event_id"], name="webhook_event_once"
            ),
            models.CheckConstraint(
                condition=Q(handling__in=Handling.values),
                name="webhook_event_handling_known",
            ),
            models.CheckConstraint(condition=~Q(event_id=""), name="webhook_event_has_an_id"),
            # An event that is done with says what became of it.
            models.CheckConstraint(
                condition=Q(handled_at__isnull=True) | ~Q(handling=Handling.WAITING),
                name="webhook_event_handled_is_whole",
            ),
        ]
        indexes = [
            # Serves: the drain of what waits.
            models.Index(
                fields=["handle_after", "id"],
                condition=Q(handled_at__isnull=True),
                name="webhook_event_waiting",
            ),
            # Serves: the search box and the health strip.
            models.Index(fields=["event_id"], name="webhook_event_by_id"),
            models.Index(fields=["-last_received_at"], name="webhook_event_newest"),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="webhook_event_frozen",
                fields=[
                    "endpoint_account",
                    "event_account",
                    "event_id",
                    "event_type",
                    "livemode",
                    "provider_created_at",
                    "raw",
                    "payload",
                    "received_at",
                ],
            ),
            *never_removed("webhook_event"),
        ]

    def __str__(self) -> str:
        return self.event_id

    def finish(
        self, handling: Handling, *, now: datetime, operation: Operation | None = None
    ) -> None:
        """Write down what became of it."""
        self.handling = handling
        self.handled_at = now
        self.handling_error = ""
        self.handling_attempts += 1
        self.operation = operation
        self.save(
            update_fields=[
                "handling",
                "handled_at",
                "handling_error",
                "handling_attempts",
                "operation",
            ]
        )
