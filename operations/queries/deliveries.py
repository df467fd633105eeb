"""Subscriptions and deliveries, newest first, page by page. Pages go by key, never by offset."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Min, Prefetch, Q, QuerySet

from operations.models import Delivery, DeliveryState, DeliveryTry, Subscription

PAGE_SIZE = 50


@dataclass(frozen=True, kw_only=True)
class SubscriptionPage:
    """`next_after`: where the next page begins; "" when there is none."""

    rows: Sequence[Subscription]
    next_after: str


@dataclass(frozen=True, kw_only=True)
class DeliveryPage:
    """`next_after`: where the next page begins; "" when there is none."""

    rows: Sequence[Delivery]
    next_after: str


def subscriptions_page(
    subscriptions: QuerySet[Subscription], *, after: str, size: int = PAGE_SIZE
) -> SubscriptionPage:
    """Ids are made in the order of time, so they are the key. A place that can't be read is the
    beginning."""
    rows = subscriptions.select_related("account", "api_key").order_by("-created_at", "-id")
    start = _uuid(after)
    if start is not None:
        place = Subscription.objects.filter(pk=start).values_list("created_at", flat=True).first()
        if place is not None:
            rows = rows.filter(Q(created_at__lt=place) | Q(created_at=place, id__lt=start))
    found = list(rows[: size + 1])
    shown = found[:size]
    return SubscriptionPage(rows=shown, next_after=str(shown[-1].pk) if len(found) > size else "")


def deliveries_page(
    deliveries: QuerySet[Delivery], *, after: str, size: int = PAGE_SIZE
) -> DeliveryPage:
    """The deliveries with their subscription and newest try."""
    rows = deliveries.select_related("subscription").prefetch_related(_TRIES).order_by("-id")
    if after.isascii() and after.isdigit() and len(after) < 19:
        rows = rows.filter(pk__lt=int(after))
    found = list(rows[: size + 1])
    shown = found[:size]
    return DeliveryPage(rows=shown, next_after=str(shown[-1].pk) if len(found) > size else "")


def delivery_with_tries(deliveries: QuerySet[Delivery], delivery_id: int) -> Delivery | None:
    """One delivery with its tries, oldest first in `attempts.all()`."""
    return (
        deliveries.select_related("subscription", "operation")
        .prefetch_related(_TRIES)
        .filter(pk=delivery_id)
        .first()
    )


_TRIES = Prefetch("attempts", DeliveryTry.objects.order_by("number"))


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """What one subscription has waiting, since when, and how much was given up."""

    waiting: int
    failed: int
    oldest: datetime | None


def backlogs(subscriptions: Sequence[Subscription]) -> dict[UUID, Backlog]:
    """The backlog of each, in one query; none for those that have nothing."""
    counted = (
        Delivery.objects.filter(
            subscription__in=subscriptions,
            state__in=[DeliveryState.WAITING, DeliveryState.FAILED],
        )
        .values_list("subscription", "state")
        .annotate(count=Count("pk"), oldest=Min("occurred_at"))
        .order_by()
    )
    found = {(row, state): (count, oldest) for row, state, count, oldest in counted}
    nothing: tuple[int, datetime | None] = (0, None)
    backlogs = {}
    for row in subscriptions:
        waiting, oldest = found.get((row.pk, DeliveryState.WAITING), nothing)
        failed, _ = found.get((row.pk, DeliveryState.FAILED), nothing)
        backlogs[row.pk] = Backlog(waiting=waiting, failed=failed, oldest=oldest)
    return backlogs


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
