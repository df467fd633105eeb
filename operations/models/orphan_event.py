"""Events about refunds that name nothing we know, kept until a person answered for them."""

import pgtrigger
from django.db import models
from django.db.models import Q

from operations.models.account import Account
from operations.models.operation import Operation
from operations.models.triggers import never_removed


class OrphanEvent(models.Model):
    """An event that says that money went back, carries no refund that we kept, and matched nothing.

    It outlives the event's month. `account` is empty when the event came from an account that is
    not ours. Answered once, by a person: it is an operation's, or was made outside. Times in UTC.
    """

    event_id = models.BigIntegerField()
    filed_at = models.DateTimeField()
    provider_event_id = models.CharField(max_length=255)
    event_type = models.CharField(max_length=255)
    event_account = models.CharField(max_length=255, blank=True, default="")
    account = models.ForeignKey(
        Account,
        on_delete=models.PROTECT,
        db_index=False,
        null=True,
        blank=True,
        related_name="orphan_events",
    )
    charge = models.CharField(max_length=255, blank=True, default="")
    payment_intent = models.CharField(max_length=255, blank=True, default="")
    happened_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    operation = models.ForeignKey(
        Operation,
        on_delete=models.PROTECT,
        db_index=False,
        null=True,
        blank=True,
        related_name="orphan_events",
    )
    reason = models.TextField(blank=True, default="")
    found_by = models.CharField(max_length=255, blank=True, default="")
    found_by_name = models.CharField(max_length=255, blank=True, default="")
    found_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event_account", "provider_event_id"], name="orphan_event_once"
            ),
            models.CheckConstraint(
                condition=(
                    Q(found_at__isnull=True, operation__isnull=True, reason="", found_by="")
                    | (Q(found_at__isnull=False) & ~Q(reason="") & ~Q(found_by=""))
                ),
                name="orphan_event_answer_is_whole",
            ),
        ]
        indexes = [
            # Serves: the list of events that nobody answered for.
            models.Index(
                fields=["-seen_at", "-id"],
                condition=Q(found_at__isnull=True),
                name="orphan_event_open",
            ),
        ]
        triggers = [
            pgtrigger.Protect(
                name="orphan_event_answered_once",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__found_at__isnull=False),
            ),
            pgtrigger.ReadOnly(
                name="orphan_event_frozen",
                fields=[
                    "id",
                    "event_id",
                    "filed_at",
                    "provider_event_id",
                    "event_type",
                    "event_account",
                    "account",
                    "charge",
                    "payment_intent",
                    "happened_at",
                    "seen_at",
                ],
            ),
            *never_removed("orphan_event"),
        ]

    def __str__(self) -> str:
        return f"{self.provider_event_id} matched nothing"
