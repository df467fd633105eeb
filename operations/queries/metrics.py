"""The figures that a monitoring system scrapes: counts and ages, never ids or texts."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import CharField, Count, F, Func, Min, Q

from operations.domain.statuses import UNRESOLVED, Attention, Status
from operations.models import Operation
from operations.queries.inbox import inbox_figures, newest_handlings


@dataclass(frozen=True, kw_only=True)
class NoticeMetrics:
    """The outbox. `failed` counts what was given up and is still kept."""

    waiting: int
    retried: int
    oldest_s: float
    failed: int
    subscriptions_failing: int
    subscriptions_disabled: int


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What stands in the rows now. Ages in seconds, 0 when there is nothing to be old.

    What waits in the inbox is counted as its page does: up to 1,001, and what is stuck apart.
    """

    unresolved: dict[str, int]
    flagged: int
    flags: dict[str, int]
    oldest_waiting_person_s: float
    leases: int
    checks_overdue: int
    events_waiting: int
    events_failing: int
    events_stuck: int
    newest_handlings: dict[str, int]
    oldest_event_s: float
    last_webhook_s: float | None
    notices: NoticeMetrics


def read_metrics(*, now: datetime) -> Metrics:
    """All of it from partial indexes: settled operations are not counted."""
    by_status = dict(
        Operation.objects.filter(status__in=UNRESOLVED)
        .order_by()
        .values_list("status")
        .annotate(count=Count("pk"))
    )
    needy = Operation.objects.filter(Q(status=Status.UNKNOWN) | ~Q(attention=[])).aggregate(
        flagged=Count("pk", filter=~Q(attention=[])), oldest=Min("needs_person_since")
    )
    leases = Operation.objects.filter(lease_expires_at__isnull=False).count()
    overdue = Operation.objects.filter(status__in=UNRESOLVED, next_check_at__lt=now).count()
    inbox = inbox_figures()
    return Metrics(
        unresolved={str(status): by_status.get(status, 0) for status in sorted(UNRESOLVED)},
        flagged=needy["flagged"],
        flags=_flag_counts(),
        oldest_waiting_person_s=_age_s(needy["oldest"], now),
        leases=leases,
        checks_overdue=overdue,
        events_waiting=inbox.waiting,
        events_failing=inbox.failing,
        events_stuck=inbox.stuck,
        newest_handlings={str(handling): count for handling, count in newest_handlings()},
        oldest_event_s=_age_s(inbox.oldest_at, now),
        last_webhook_s=_age_s(inbox.last_webhook_at, now) if inbox.last_webhook_at else None,
        notices=_read_notices(now),
    )


_NOTICES = """
SELECT waiting.count, waiting.retried, waiting.oldest,
       (SELECT count(*) FROM operations_delivery WHERE state = 'failed'),
       (SELECT count(*) FROM operations_subscription WHERE disabled_at IS NULL AND failures > 0),
       (SELECT count(*) FROM operations_subscription WHERE disabled_at IS NOT NULL)
FROM (
    SELECT count(*) AS count, count(*) FILTER (WHERE delivery.tries > 0) AS retried,
           min(delivery.occurred_at) AS oldest
    FROM operations_delivery AS delivery
    JOIN operations_subscription AS subscriber ON subscriber.id = delivery.subscription_id
    LEFT JOIN operations_apikey AS key ON key.id = subscriber.api_key_id
    WHERE delivery.state = 'waiting' AND subscriber.disabled_at IS NULL
      AND key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > %s)
) AS waiting
"""


def _read_notices(now: datetime) -> NoticeMetrics:
    """What waits for nobody, as its subscription or its key has ended, is not late."""
    with connection.cursor() as cursor:
        cursor.execute(_NOTICES, [now])
        waiting, retried, oldest, failed, failing, disabled = cursor.fetchone()
    return NoticeMetrics(
        waiting=waiting,
        retried=retried,
        oldest_s=_age_s(oldest, now),
        failed=failed,
        subscriptions_failing=failing,
        subscriptions_disabled=disabled,
    )


def _flag_counts() -> dict[str, int]:
    """How many operations carry each flag."""
    flags = Func(F("attention"), function="unnest", output_field=CharField())
    counts = dict(
        Operation.objects.exclude(attention=[])
        .order_by()
        .annotate(flag=flags)
        .values_list("flag")
        .annotate(count=Count("pk"))
    )
    return {str(flag): counts.get(flag, 0) for flag in sorted(Attention)}


def _age_s(moment: datetime | None, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds()) if moment else 0.0
