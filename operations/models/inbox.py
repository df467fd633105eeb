"""What waits to be handled, and what became of what was handled."""

from datetime import datetime

import pgtrigger
from django.db import models
from django.db.models import F, Q

from operations.models.operation import Operation
from operations.models.statements import made
from operations.models.triggers import append_only, no_truncate, only_handled_items_leave
from operations.models.webhook_event import WebhookEvent


class Handling(models.TextChoices):
    """What became of an event. "" while nothing is known of it."""

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


class InboxItem(models.Model):
    """An event that waits, with what matching needs to know of it; gone when it is handled.

    `facts` is the whole event in our words (`operations.domain.events`). What stands beside it
    is drawn from it for the claim: `relevant` tells whether there is anything to do about it;
    `refund_id` is that of the one refund it carries, empty when it carries none or several.

    It is due at `handle_after`. Whoever handles it claims it until `claimed_until`, up to which
    `handle_after` is put off, so that a claim that dies is taken over. `attempts` counts claims,
    `failures` those in a row that ended in an error or not at all. With `stuck_at` set it waits
    for a person.
    """

    event = models.OneToOneField(
        WebhookEvent,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        primary_key=True,
        related_name="inbox_item",
    )
    filed_at = models.DateTimeField()
    provider_event_id = models.CharField(max_length=255)
    event_account = models.CharField(max_length=64, blank=True, default="")
    livemode = models.BooleanField(null=True, blank=True)
    relevant = models.BooleanField()
    refund_id = models.CharField(max_length=255, blank=True, default="")
    facts = models.JSONField()
    received_at = models.DateTimeField()

    handle_after = models.DateTimeField()
    claimed_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    handling = models.CharField(max_length=32, blank=True, default="")
    error = models.CharField(max_length=500, blank=True, default="")
    stuck_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(handling__in=Handling.values), name="inbox_item_handling_known"
            ),
            # A claimed item is not due before its claim ends.
            models.CheckConstraint(
                condition=Q(claimed_until__isnull=True) | Q(handle_after__gte=F("claimed_until")),
                name="inbox_item_claim_holds",
            ),
            # What a person is asked to look at says why.
            models.CheckConstraint(
                condition=Q(stuck_at__isnull=True) | ~Q(error=""),
                name="inbox_item_stuck_says_why",
            ),
        ]
        indexes = [
            # Serves: the drain of what waits.
            models.Index(
                fields=["handle_after", "event"],
                condition=Q(stuck_at__isnull=True),
                name="inbox_item_due",
            ),
            # Serves: the page of what is stuck, and its count.
            models.Index(
                fields=["stuck_at"],
                condition=Q(stuck_at__isnull=False),
                name="inbox_item_stuck",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="inbox_item_frozen",
                fields=["event", "filed_at", "provider_event_id", "event_account", "received_at"],
            ),
            only_handled_items_leave(),
            no_truncate("inbox_item"),
        ]

    def __str__(self) -> str:
        return self.provider_event_id


class EventHandling(models.Model):
    """What became of an event that was handled. A replay adds a row.

    It keeps what is needed to speak of an event whose month is gone: its id and its type.
    """

    event = models.ForeignKey(
        WebhookEvent,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        # So that Django's joins keep the handlings of events that are gone.
        null=True,
        related_name="handlings",
    )
    filed_at = models.DateTimeField()
    provider_event_id = models.CharField(max_length=255)
    event_type = models.CharField(max_length=255)
    handling = models.CharField(max_length=32)
    handled_at = models.DateTimeField()
    attempts = models.PositiveIntegerField()
    operation = models.ForeignKey(
        Operation,
        on_delete=models.PROTECT,
        db_index=False,
        null=True,
        blank=True,
        related_name="event_handlings",
    )
    error = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(handling__in=[known for known in Handling.values if known]),
                name="event_handling_known",
            ),
            models.CheckConstraint(
                condition=Q(event__isnull=False), name="event_handling_has_an_event"
            ),
        ]
        indexes = [
            # Serves: the search box, and the trigger that keeps unhandled items.
            models.Index(fields=["provider_event_id", "event"], name="event_handling_by_event"),
            # Serves: the timeline of an operation.
            models.Index(
                fields=["operation", "handled_at"],
                condition=Q(operation__isnull=False),
                name="event_handling_by_operation",
            ),
        ]
        triggers = append_only("event_handling")

    def __str__(self) -> str:
        return f"{self.provider_event_id} {self.handling}"

    @classmethod
    def of(
        cls,
        item: InboxItem,
        handling: Handling,
        *,
        now: datetime,
        operation: Operation | None = None,
    ) -> "EventHandling":
        """The row that says what became of this item."""
        return made(
            cls,
            event_id=item.event_id,
            filed_at=item.filed_at,
            provider_event_id=item.provider_event_id,
            event_type=str(item.facts.get("type", ""))[:255],
            handling=handling,
            handled_at=now,
            attempts=item.attempts,
            operation_id=operation.pk if operation else None,
            error=item.error,
        )
