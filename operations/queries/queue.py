"""The queue: what needs a person, in the order in which it should be looked at, page by page.

Pages go by key, never by offset (`stretches`), and one statement reads a page with all that its
lines show. A filter that an index serves leads the way; what the others hide is looked through for
so many operations and no further, and the page says so.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from operations.queries import parts as looking
from operations.queries.evidence import EvidenceLine
from operations.queries.parts import Asked, Part
from operations.queries.stretches import parsed

PAGE_SIZE = 50


class QueueRow(NamedTuple):
    """One line of a list. `agent`: the name of the API key that asked, "" for none."""

    stretch: int
    id: UUID
    status: str
    unknown_reason: str
    attention: list[str]
    failure_message: str
    order_id: str
    reference: str
    amount: int
    currency: str
    key_window_closes_at: datetime | None
    first_sent_at: datetime | None
    needs_person_since: datetime | None
    created_at: datetime
    next_check_at: datetime | None
    lookups_made: int
    account: str
    agent: str
    holder: str
    holder_name: str
    proposal_waits: bool
    evidence: EvidenceLine | None


@dataclass(frozen=True, kw_only=True)
class QueuePage:
    """Up to 50 lines, and where the next page begins ("" when there is none).

    `looked_through`: so many were looked through, and the next page looks further; 0 when the page
    is full or the list is at its end.
    """

    rows: list[QueueRow]
    next_after: str = ""
    looked_through: int = 0


def queue_page(asked: Asked, *, after: str = "") -> QueuePage:
    """The page that follows the place `after`; one that can't be read is the beginning.

    One query, two more when that leaves too few to fill the page.
    """
    stretches = asked.stretches
    start = parsed(after, stretches)
    parts = [
        Part(asked, stretch, start[1] if start and number == start[0] else None)
        for number, stretch in enumerate(stretches)
        if not start or number >= start[0]
    ]
    # Mostly the first stretch fills the page; with filters they are read together.
    at_once = len(parts) if parts[0].is_filtered else 1
    rows = _read(parts[:at_once], 0, PAGE_SIZE + 1, asked.now)
    if len(rows) <= PAGE_SIZE and at_once < len(parts):
        rows += _read(parts[at_once:], at_once, PAGE_SIZE + 1 - len(rows), asked.now)
    shown = rows[:PAGE_SIZE]
    if len(rows) > PAGE_SIZE:
        return QueuePage(
            rows=shown, next_after=parts[shown[-1].stretch].stretch.place_of(shown[-1])
        )
    bound = _first_bound(parts)
    if bound is None:
        return QueuePage(rows=shown)
    number, place = bound
    return QueuePage(
        rows=[row for row in shown if row.stretch <= number],
        next_after=place,
        looked_through=looking.LOOKED_THROUGH,
    )


def rows_of(ids: Sequence[UUID], *, now: datetime) -> list[QueueRow]:
    """The lines of these operations, newest first. One query."""
    sql = (
        f"SELECT 0 AS stretch, row_number() OVER (ORDER BY o.created_at DESC, o.id DESC) AS place,"  # noqa: S608
        f" {_COLUMNS} FROM operations_operation AS o WHERE o.id = ANY (%s)"
    )
    return _lines(sql, [list(ids)], now)


_COLUMNS = ", ".join(
    f"o.{name}"
    for name in (
        "id",
        "status",
        "unknown_reason",
        "attention",
        "failure_message",
        "order_id",
        "reference",
        "amount",
        "currency",
        "key_window_closes_at",
        "first_sent_at",
        "needs_person_since",
        "created_at",
        "next_check_at",
        "lookups_made",
        "account_id",
        "opened_by_id",
    )
)


def _read(parts: Sequence[Part], first: int, most: int, now: datetime) -> list[QueueRow]:
    texts: list[str] = []
    values: list[Any] = []
    for number, part in enumerate(parts, first):
        chosen = part.chosen(_COLUMNS, most)
        texts.append(
            f"(SELECT {number} AS stretch, row_number() OVER () AS place, o.*"  # noqa: S608
            f" FROM ({chosen.sql}) AS o)"
        )
        values += chosen.values
    union = " UNION ALL ".join(texts)
    if len(texts) > 1:
        union = f"SELECT * FROM ({union}) AS o ORDER BY stretch, place LIMIT {most}"  # noqa: S608
    return _lines(union, values, now)


class _Bound(NamedTuple):
    """A row as far as it says where it stands."""

    stretch: int
    key_window_closes_at: datetime | None
    amount: int
    currency: str
    created_at: datetime
    needs_person_since: datetime | None
    id: UUID


def _first_bound(parts: Sequence[Part]) -> tuple[int, str] | None:
    """The first stretch that has more than is looked through, and where to look further."""
    bounds = [part.bound(number) for number, part in enumerate(parts) if part.is_filtered]
    if not bounds:
        return None
    union = " UNION ALL ".join(f"({bound.sql})" for bound in bounds)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT * FROM ({union}) AS every ORDER BY stretch LIMIT 1",  # noqa: S608
            [value for bound in bounds for value in bound.values],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    bound_row = _Bound(*row)
    return bound_row.stretch, parts[bound_row.stretch].stretch.place_of(bound_row)


_LINES = """
WITH page AS MATERIALIZED ({page})
SELECT page.stretch, page.id, page.status, page.unknown_reason, page.attention,
       page.failure_message, page.order_id, page.reference, page.amount, page.currency,
       page.key_window_closes_at, page.first_sent_at, page.needs_person_since, page.created_at,
       page.next_check_at, page.lookups_made, account.name, coalesce(agent.name, ''),
       coalesce(claim.holder, ''), coalesce(claim.holder_name, ''),
       EXISTS (SELECT FROM operations_proposal AS proposal
               WHERE proposal.operation_id = page.id AND proposal.state = 'waiting'),
       newest.source, newest.provider_object_id, newest.provider_status, newest.summary,
       newest.facts, newest.observed_at
FROM page
JOIN operations_account AS account ON account.id = page.account_id
LEFT JOIN operations_apikey AS agent ON agent.id = page.opened_by_id
LEFT JOIN operations_claim AS claim
    ON claim.operation_id = page.id AND claim.expires_at > %s
LEFT JOIN LATERAL (
    SELECT source, provider_object_id, provider_status, summary, observed_at,
           CASE WHEN source IN ('lookup', 'statement') THEN facts::text END AS facts
    FROM operations_evidence
    WHERE operation_id = page.id
    ORDER BY recorded_at DESC, id DESC LIMIT 1
) AS newest ON TRUE
ORDER BY page.stretch, page.place
"""
_OWN = len(QueueRow._fields) - 1


def _lines(page: str, values: Sequence[Any], now: datetime) -> list[QueueRow]:
    with connection.cursor() as cursor:
        cursor.execute(_LINES.replace("{page}", page), [*values, now])
        return [_row(row) for row in cursor.fetchall()]


def _row(row: Sequence[Any]) -> QueueRow:
    newest = None
    if row[_OWN] is not None:
        source, refund, status, summary, facts, observed_at = row[_OWN:]
        newest = EvidenceLine(
            source, refund, status, summary, json.loads(facts) if facts else {}, observed_at
        )
    return QueueRow._make((*row[:_OWN], newest))
