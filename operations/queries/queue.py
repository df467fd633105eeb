"""The queue: what needs a person, in the order in which it should be looked at, page by page.

Pages go by key, never by offset (`stretches`), and one statement reads a page with all that its
lines show. A filter that an index serves leads the way; what the others hide is looked through for
so many operations and no further, and the page says so.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from operations.queries.evidence import EvidenceLine
from operations.queries.figures import COUNT_CAP
from operations.queries.narrowing import (
    WAITS_FOR_SECOND,
    Condition,
    Narrow,
    claimed_by,
    conditions,
)
from operations.queries.stretches import STRETCHES, Order, Stretch, View, order_of, parsed

PAGE_SIZE = 50
#: How many operations a page looks through for those that its filters leave.
LOOKED_THROUGH = 10_000
#: The same for the count of a saved view, of which there are several on a page.
COUNTED_THROUGH = 2_000


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


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which list: a view for a person, narrowed and ordered."""

    view: View
    person: str
    now: datetime
    order: Order | None = None
    narrow: Narrow = field(default_factory=Narrow)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The parts of the list, in its order."""
        return STRETCHES[self.view][self.order or order_of(self.view, "")]


def queue_page(asked: Asked, *, after: str = "") -> QueuePage:
    """The page that follows the place `after`; one that can't be read is the beginning.

    One query; two when filters leave too few to fill the page.
    """
    stretches = asked.stretches
    start = parsed(after, stretches)
    parts = [
        _Part(asked, stretch, start[1] if start and number == start[0] else None)
        for number, stretch in enumerate(stretches)
        if not start or number >= start[0]
    ]
    rows = _read(parts, PAGE_SIZE + 1, asked.now)
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
        looked_through=LOOKED_THROUGH,
    )


def rows_of(ids: Sequence[UUID], *, now: datetime) -> list[QueueRow]:
    """The lines of these operations, newest first. One query."""
    sql = (
        f"SELECT 0 AS stretch, row_number() OVER (ORDER BY o.created_at DESC, o.id DESC) AS place,"  # noqa: S608
        f" {_COLUMNS} FROM operations_operation AS o WHERE o.id = ANY (%s)"
    )
    return _lines(sql, [list(ids)], now)


def counts_of(lists: Sequence[Asked]) -> list[int]:
    """How many each list holds, at most one more than the cap, in one query.

    Of a list with filters no more than 2,000 operations are looked through.
    """
    parts: list[str] = []
    values: list[Any] = []
    for asked in lists:
        each = [_Part(asked, stretch, None).counted() for stretch in asked.stretches]
        union = " UNION ALL ".join(f"({part.sql})" for part in each)
        parts.append(
            f"(SELECT count(*) FROM (SELECT 1 FROM ({union}) AS every"  # noqa: S608
            f" LIMIT {COUNT_CAP + 1}) AS capped)"
        )
        values += [value for part in each for value in part.values]
    if not parts:
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", values)
        return list(cursor.fetchone())


class _Part:
    """A stretch of a list as SQL: what an index serves inside, what it does not around it."""

    def __init__(self, asked: Asked, stretch: Stretch, beyond: Sequence[Any] | None) -> None:
        self.stretch = stretch
        inside = [Condition(stretch.where)]
        outside = conditions(asked.narrow, asked.now)
        if asked.view is View.MINE:
            inside.append(claimed_by(asked.person, asked.now))
        elif asked.view is View.SECOND:
            inside.append(WAITS_FOR_SECOND)
        lead = _lead(stretch, outside, asked.narrow)
        inside += lead
        if beyond is not None:
            inside.append(stretch.beyond(beyond))
        around = [*outside.values(), *([Condition(stretch.but)] if stretch.but else [])]
        self._inside, self._around = _all_of(inside), _all_of(around)
        self.is_filtered = bool(around)

    def chosen(self, columns: str, most: int) -> Condition:
        """The first rows that the filters leave, in order."""
        source, values = self._source(LOOKED_THROUGH)
        return Condition(
            f"SELECT {columns} FROM {source} ORDER BY {self.stretch.order_by} LIMIT {most}",  # noqa: S608
            values,
        )

    def counted(self) -> Condition:
        """One for each row, as far as is counted."""
        source, values = self._source(COUNTED_THROUGH)
        return Condition(f"SELECT 1 FROM {source} LIMIT {COUNT_CAP + 1}", values)  # noqa: S608

    def bound(self, number: int) -> Condition:
        """The last row that is looked through, if there are so many."""
        return Condition(
            f"SELECT {number} AS stretch, {_KEYS} FROM operations_operation AS o"  # noqa: S608
            f" WHERE {self._inside.sql} ORDER BY {self.stretch.order_by}"
            f" OFFSET {LOOKED_THROUGH - 1} LIMIT 1",
            self._inside.values,
        )

    def _source(self, most: int) -> Condition:
        if not self.is_filtered:
            return Condition(
                f"operations_operation AS o WHERE {self._inside.sql}", self._inside.values
            )
        return Condition(
            f"(SELECT * FROM operations_operation AS o WHERE {self._inside.sql}"  # noqa: S608
            f" ORDER BY {self.stretch.order_by} LIMIT {most}) AS o WHERE {self._around.sql}",
            self._inside.values + self._around.values,
        )


def _lead(stretch: Stretch, outside: dict[str, Condition], narrow: Narrow) -> list[Condition]:
    """Take from the filters what an index serves together with this stretch."""
    if "order" in outside:
        return [outside.pop("order")]
    if "claimed" in outside and narrow.claimed != "nobody":
        return [outside.pop("claimed")]
    for name in stretch.narrows:
        if name == "status" and "attention" in outside:
            continue
        if name == "status" and narrow.status not in _STATUSES_WITH_AN_INDEX:
            continue
        if name in outside:
            return [outside.pop(name)]
    # Lists by age of what carries a flag have an index of their own.
    if "attention" in outside and stretch.where == "TRUE":
        return [Condition("NOT (o.attention = '{}')")]
    if "reason" in outside and stretch.where == "TRUE":
        return [Condition("o.status = 'unknown'")]
    return []


_STATUSES_WITH_AN_INDEX = ("failed", "processing", "unknown")


def _all_of(every: Sequence[Condition]) -> Condition:
    return Condition(
        " AND ".join(one.sql for one in every) or "TRUE",
        tuple(value for one in every for value in one.values),
    )


_KEYS = "o.key_window_closes_at, o.amount, o.currency, o.created_at, o.needs_person_since, o.id"
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


def _read(parts: Sequence[_Part], most: int, now: datetime) -> list[QueueRow]:
    texts: list[str] = []
    values: list[Any] = []
    for number, part in enumerate(parts):
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


def _first_bound(parts: Sequence[_Part]) -> tuple[int, str] | None:
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
