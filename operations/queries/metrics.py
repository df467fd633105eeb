"""The figures that a monitoring system scrapes: counts and ages, never ids or texts."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Min, Q

from operations.domain.statuses import UNRESOLVED, Status
from operations.models import Operation, WebhookEvent


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What stands in the rows now. Ages in seconds, 0 when there is nothing to be old."""

    unresolved: dict[str, int]
    flagged: int
    oldest_waiting_person_s: float
    leases: int
    checks_overdue: int
    events_waiting: int
    events_failing: int
    oldest_event_s: float
    last_webhook_s: float | None


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
    waiting = WebhookEvent.objects.filter(handled_at__isnull=True).aggregate(
        count=Count("pk"),
        failing=Count("pk", filter=~Q(handling_error="")),
        oldest=Min("received_at"),
    )
    last = WebhookEvent.objects.aggregate(last=Max("last_received_at"))["last"]
    return Metrics(
        unresolved={str(status): by_status.get(status, 0) for status in sorted(UNRESOLVED)},
        flagged=needy["flagged"],
        oldest_waiting_person_s=_age_s(needy["oldest"], now),
        leases=leases,
        checks_overdue=overdue,
        events_waiting=waiting["count"],
        events_failing=waiting["failing"],
        oldest_event_s=_age_s(waiting["oldest"], now),
        last_webhook_s=_age_s(last, now) if last else None,
    )


def _age_s(moment: datetime | None, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds()) if moment else 0.0
