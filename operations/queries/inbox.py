"""The inbox in figures, and what is stuck in it."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from operations.models import EventHandling, Handling, InboxItem
from operations.queries.figures import COUNT_CAP, LAST_WEBHOOK

#: How many stuck or failing events the page shows.
SHOWN = 50
#: What became of the newest so many events is counted.
COUNTED = 1_000


@dataclass(frozen=True, kw_only=True)
class InboxFigures:
    """How the inbox stands. `waiting`, `failing` and `stuck` stop at one more than the cap.

    `waiting` counts all that is not stuck; `failing` those of them whose last try went wrong.
    """

    last_webhook_at: datetime | None
    waiting: int
    oldest_at: datetime | None
    failing: int
    stuck: int


_FIGURES = f"""
SELECT {LAST_WEBHOOK},
    (SELECT count(*) FROM (SELECT 1 FROM operations_inboxitem
        WHERE stuck_at IS NULL LIMIT %(most)s) AS capped),
    (SELECT received_at FROM operations_inboxitem
        WHERE stuck_at IS NULL ORDER BY event_id LIMIT 1),
    (SELECT count(*) FROM (SELECT 1 FROM operations_inboxitem
        WHERE stuck_at IS NULL AND failures > 0 LIMIT %(most)s) AS capped),
    (SELECT count(*) FROM (SELECT 1 FROM operations_inboxitem
        WHERE stuck_at IS NOT NULL LIMIT %(most)s) AS capped)
"""  # noqa: S608 - our own text


def inbox_figures() -> InboxFigures:
    """One query, whatever the size."""
    with connection.cursor() as cursor:
        cursor.execute(_FIGURES, {"most": COUNT_CAP + 1})
        last, waiting, oldest, failing, stuck = cursor.fetchone()
    return InboxFigures(
        last_webhook_at=last, waiting=waiting, oldest_at=oldest, failing=failing, stuck=stuck
    )


def stuck_items() -> list[InboxItem]:
    """Those that wait for a person, the longest stuck first."""
    return list(InboxItem.objects.filter(stuck_at__isnull=False).order_by("stuck_at")[:SHOWN])


def failing_items() -> list[InboxItem]:
    """Those that are tried again, the next one first."""
    rows = InboxItem.objects.filter(stuck_at__isnull=True, failures__gt=0)
    return list(rows.order_by("handle_after", "event")[:SHOWN])


def newest_handlings() -> list[tuple[Handling, int]]:
    """What became of the newest events, the most frequent first."""
    newest = EventHandling.objects.order_by("-pk").values_list("handling", flat=True)[:COUNTED]
    counts: dict[str, int] = {}
    for handling in newest:
        counts[handling] = counts.get(handling, 0) + 1
    found = [(Handling(handling), count) for handling, count in counts.items()]
    return sorted(found, key=lambda row: -row[1])
