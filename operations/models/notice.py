"""Who is told, and the outbox: each notice to each subscriber, and each try to deliver it."""

from datetime import datetime

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from operations.domain.notices import NoticeType
from operations.models.account import Account, ApiKey
from operations.models.operation import Operation
from operations.models.triggers import never_removed, no_update_when

_TYPES = sorted(str(kind) for kind in NoticeType)
_WHSEC = r"^whsec_[A-Za-z0-9+/]{32,86}={0,2}$"


class DeliveryState(models.TextChoices):
    """How far a delivery is."""

    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Failed"


class Subscription(models.Model):
    """One address that is told. Times in UTC.

    `types` empty: all; `account` none: all. `api_key`: whose it is over the API; none: it was
    made in the console. The secrets are kept as they are, because every notice is signed with
    them; they are shown once. `disabled_by`: which kind of actor disabled it. `failures` counts the
    tries that failed in a row, of any notice.
    """

    id = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=100, blank=True, default="")
    address = models.CharField(max_length=500)
    types = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    account = models.ForeignKey(
        Account,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, null=True, blank=True, related_name="subscriptions"
    )
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=255)
    secret = models.CharField(max_length=100)
    previous_secret = models.CharField(max_length=100, blank=True, default="")
    previous_secret_until = models.DateTimeField(null=True, blank=True)
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_reason = models.CharField(max_length=500, blank=True, default="")
    disabled_by = models.CharField(max_length=16, blank=True, default="", db_default="")
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    resume_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(address__regex=r"^https?://[^ ]+$"), name="subscription_has_an_address"
            ),
            models.CheckConstraint(
                condition=Q(types__contained_by=_TYPES), name="subscription_types_known"
            ),
            models.CheckConstraint(
                condition=Q(secret__regex=_WHSEC),
                name="subscription_has_a_secret",
            ),
            models.CheckConstraint(
                condition=Q(previous_secret="", previous_secret_until__isnull=True)
                | (~Q(previous_secret="") & Q(previous_secret_until__isnull=False)),
                name="subscription_previous_secret_ends",
            ),
            models.CheckConstraint(
                condition=Q(disabled_at__isnull=True, disabled_reason="")
                | (Q(disabled_at__isnull=False) & ~Q(disabled_reason="")),
                name="subscription_disabled_says_why",
            ),
            models.CheckConstraint(
                condition=Q(disabled_by="") | Q(disabled_at__isnull=False),
                name="subscription_disabled_by_somebody",
            ),
            models.CheckConstraint(
                condition=Q(failures=0, failing_since__isnull=True)
                | Q(failures__gt=0, failing_since__isnull=False),
                name="subscription_failing_has_a_time",
            ),
        ]
        indexes = [
            # Serves: the list, newest first.
            models.Index(F("created_at").desc(), F("id").desc(), name="subscription_by_age"),
        ]
        triggers = [
            # What was checked and agreed on: another address is another subscription.
            pgtrigger.ReadOnly(
                name="subscription_frozen",
                fields=["id", "address", "account", "api_key", "created_at", "created_by"],
            ),
            *never_removed("subscription"),
        ]

    def __str__(self) -> str:
        return self.name or self.address

    def key_has_ended(self, now: datetime) -> bool:
        """Whether the key that made it was revoked or has expired, and it has ended with it."""
        return self.api_key is not None and self.api_key.has_ended(now)


class Delivery(models.Model):
    """One notice to one subscriber, written with the change that it tells of. Times in UTC.

    `message_id` is the same for all who are told of one change, and for every try. `tries` counts
    all tries; the retry schedule counts from `round_began`, which *send again* moves.
    """

    message_id = models.CharField(max_length=64)
    subscription = models.ForeignKey(
        Subscription, on_delete=models.PROTECT, related_name="deliveries", db_index=False
    )
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="deliveries", db_index=False
    )
    type = models.CharField(max_length=32)
    revision = models.PositiveIntegerField()
    occurred_at = models.DateTimeField()
    body = models.TextField()
    state = models.CharField(max_length=16, default=DeliveryState.WAITING)
    next_try_at = models.DateTimeField()
    claimed_until = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    round_began = models.PositiveIntegerField(default=0)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # One change is told once, however often it is learned.
            models.UniqueConstraint(
                fields=["subscription", "operation", "revision", "type"],
                name="delivery_once_per_change",
            ),
            models.UniqueConstraint(
                fields=["message_id", "subscription"], name="delivery_message_once"
            ),
            models.CheckConstraint(condition=Q(type__in=_TYPES), name="delivery_type_known"),
            models.CheckConstraint(
                condition=Q(state__in=DeliveryState.values), name="delivery_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state=DeliveryState.WAITING, ended_at__isnull=True)
                | (
                    ~Q(state=DeliveryState.WAITING)
                    & Q(ended_at__isnull=False, claimed_until__isnull=True)
                ),
                name="delivery_ended_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(round_began__lte=F("tries")), name="delivery_rounds_follow_tries"
            ),
        ]
        indexes = [
            # Serves: the claim of what is due.
            models.Index(
                fields=["subscription", "next_try_at", "id"],
                condition=Q(state=DeliveryState.WAITING),
                name="delivery_due",
            ),
            # Serves: how many tries are under way at one receiver.
            models.Index(
                fields=["subscription", "claimed_until"],
                condition=Q(claimed_until__isnull=False),
                name="delivery_claimed",
            ),
            # Serves: the order, in which a later notice waits for an earlier one.
            models.Index(
                fields=["subscription", "operation", "id"],
                condition=Q(state=DeliveryState.WAITING),
                name="delivery_in_order",
            ),
            # Serves: the lists, newest first.
            models.Index(fields=["subscription", "-id"], name="delivery_by_subscription"),
            models.Index(fields=["operation", "-id"], name="delivery_by_operation"),
            models.Index(
                fields=["-id"], condition=Q(state=DeliveryState.FAILED), name="delivery_failed"
            ),
            # Serves: the removal of what was kept long enough.
            models.Index(
                fields=["ended_at"],
                condition=~Q(state=DeliveryState.WAITING),
                name="delivery_by_end",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="delivery_frozen",
                fields=[
                    "id",
                    "message_id",
                    "subscription",
                    "operation",
                    "type",
                    "revision",
                    "occurred_at",
                    "body",
                ],
            ),
            no_update_when("delivery_tries_counted", 'NEW."tries" < OLD."tries"'),
            # What waits is owed to somebody.
            pgtrigger.Protect(
                name="delivery_waits_for_its_end",
                operation=pgtrigger.Delete,
                condition=pgtrigger.Condition("OLD.\"state\" = 'waiting'"),
            ),
        ]

    def __str__(self) -> str:
        return self.message_id

    @property
    def last_try(self) -> "DeliveryTry | None":
        """Of the tries that were read with it, the newest."""
        return max(self.attempts.all(), key=lambda attempt: attempt.number, default=None)


class DeliveryTry(models.Model):
    """One HTTP request, committed before it is made. Without `finished_at` its end is unknown."""

    delivery = models.ForeignKey(
        Delivery, on_delete=models.CASCADE, related_name="attempts", db_index=False
    )
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    http_status = models.PositiveIntegerField(null=True, blank=True)
    body = models.CharField(max_length=500, blank=True, default="")
    error = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["delivery", "number"], name="delivery_try_once"),
            models.CheckConstraint(
                condition=Q(
                    finished_at__isnull=True,
                    duration_ms__isnull=True,
                    http_status__isnull=True,
                    error="",
                )
                | (
                    Q(finished_at__isnull=False, duration_ms__isnull=False)
                    & (Q(http_status__isnull=False) | ~Q(error=""))
                ),
                name="delivery_try_is_whole",
            ),
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="delivery_try_frozen", fields=["id", "delivery", "number", "started_at"]
            ),
            no_update_when("delivery_try_finished_once", 'OLD."finished_at" IS NOT NULL'),
        ]

    def __str__(self) -> str:
        return f"try {self.number}"
