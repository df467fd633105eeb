"""An operation's look-ups as the rule about absence sees them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from operations.domain.absence import Grade, Look, grade
from operations.models import Evidence, EvidenceSource, Operation


def look_of(facts: Mapping[str, Any], at: datetime) -> Look:
    """One look-up out of what is kept of it."""
    total = facts.get("provider_total")
    return Look(
        at=at,
        absent=facts.get("result") in ("absent", "incomplete"),
        complete=facts.get("complete") is True,
        explained=facts.get("total_explained"),
        shown=tuple(sorted(facts.get("refunds_seen") or ())),
        provider_total=total if isinstance(total, int) else None,
    )


def grade_of(
    operation: Operation,
    lookups: Iterable[Evidence],
    *,
    conclusive_after_s: int | None,
    now_seen: Look | None = None,
) -> Grade:
    """What the absence is worth. `lookups` oldest first; those that failed say nothing.

    `now_seen` is a look-up that is not written yet.
    """
    looks = [
        look_of(row.facts, row.observed_at)
        for row in lookups
        if row.facts.get("result") != "unreadable"
    ]
    return grade(
        [*looks, now_seen] if now_seen else looks,
        last_sent_at=operation.last_sent_at,
        conclusive_after_s=conclusive_after_s,
    )


def lookups_of(operation: Operation) -> list[Evidence]:
    """All look-ups of an operation, oldest first."""
    rows = operation.evidence.filter(source=EvidenceSource.LOOKUP)
    return list(rows.order_by("observed_at", "pk"))
