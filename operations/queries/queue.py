"""The queue: what needs a person, in the order in which it should be looked at, page by page.

Pages go by key, never by offset. The order (unknown first, key deadline with none last, amount
falling) mixes directions and a NULL, which one range of an index can't express; so the list is
read as up to four stretches, each a range of the index `operation_queue` that begins after a row
comparison, and a page goes on into the next stretch only when one runs out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, QuerySet, Value
from django.db.models.expressions import OrderBy
from django.db.models.lookups import GreaterThan, LessThan

from operations.domain.advice import Advice, Situation, advise
from operations.domain.sentences import Sentence
from operations.domain.statuses import SETTLED, Status
from operations.models import Evidence, EvidenceSource, Operation, Proposal
from operations.models.proposal import ProposalState
from operations.queries.dossier import absence_holds, flags, lookup_result, window_is_closed
from operations.queries.evidence import in_words
from operations.queries.figures import COUNT_CAP

PAGE_SIZE = 50


class View(StrEnum):
    """The saved views."""

    DECIDE = "decide"
    SECOND = "second"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class QueueRow:
    """One line of a list. `since` is when it began to need a person, or its creation."""

    operation: Operation
    last_evidence: Evidence | None
    told: Sentence | None
    advice: Advice
    since: datetime
    proposal_waits: bool


@dataclass(frozen=True, kw_only=True)
class QueuePage:
    """Up to 50 lines, and where the next page begins ("" when there is none)."""

    rows: list[QueueRow]
    next_after: str


@dataclass(frozen=True)
class _Stretch:
    """A part of a list that one index range serves. `keys`: field, and whether it falls."""

    letter: str
    where: Q
    keys: tuple[tuple[str, bool], ...]


_WITH_WINDOW = (("key_window_closes_at", False), ("amount", True), ("id", False))
_WITHOUT_WINDOW = (("amount", True), ("id", False))
_UNKNOWN = Q(status=Status.UNKNOWN)
_FLAGGED = ~_UNKNOWN & ~Q(attention=[])
_HAS_WINDOW = Q(key_window_closes_at__isnull=False)
_BY_AGE = (_Stretch("n", Q(), (("created_at", True), ("id", True))),)


def _by_urgency(others: Q) -> tuple[_Stretch, ...]:
    """Unknown first, then the `others`; of each those with a deadline first."""
    return (
        _Stretch("a", _UNKNOWN & _HAS_WINDOW, _WITH_WINDOW),
        _Stretch("b", _UNKNOWN & ~_HAS_WINDOW, _WITHOUT_WINDOW),
        _Stretch("c", others & _HAS_WINDOW, _WITH_WINDOW),
        _Stretch("d", others & ~_HAS_WINDOW, _WITHOUT_WINDOW),
    )


_STRETCHES: Mapping[View, tuple[_Stretch, ...]] = {
    View.DECIDE: _by_urgency(_FLAGGED),
    View.SECOND: _by_urgency(~_UNKNOWN),
    View.ALL: _BY_AGE,
}


def operations_of(view: View) -> QuerySet[Operation]:
    """What a view draws from. Which of them need a person is said by its stretches alone: said
    twice, the planner would multiply the two and expect far too few rows."""
    if view is View.SECOND:
        waiting = Proposal.objects.filter(state=ProposalState.WAITING)
        return Operation.objects.filter(pk__in=waiting.values("operation"))
    return Operation.objects.all()


def queue_page(
    *, view: View, operations: QuerySet[Operation], after: str, now: datetime
) -> QueuePage:
    """The page of `operations` (a view, perhaps filtered) that follows the place `after`.

    A place that can't be read is the beginning.
    """
    found = _read(operations, _STRETCHES[view], after, PAGE_SIZE + 1)
    shown = [operation for _, operation in found[:PAGE_SIZE]]
    more = len(found) > PAGE_SIZE
    return QueuePage(
        rows=rows_of(shown, now), next_after=_place(*found[PAGE_SIZE - 1]) if more else ""
    )


def rows_of(operations: Sequence[Operation], now: datetime) -> list[QueueRow]:
    """The lines of these operations, with one query for all their newest evidence."""
    newest = _newest_evidence([operation.pk for operation in operations])
    return [_row(operation, newest, now) for operation in operations]


def listed(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """With all that a line shows."""
    return operations.select_related("account").annotate(
        proposal_waits=Exists(
            Proposal.objects.filter(operation=OuterRef("pk"), state=ProposalState.WAITING)
        )
    )


_COUNTS_SQL = """
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM operations_operation
        WHERE status = 'unknown' OR NOT (attention = '{}') LIMIT %(most)s) AS capped),
    (SELECT count(*) FROM (SELECT 1 FROM operations_proposal
        WHERE state = 'waiting' LIMIT %(most)s) AS capped),
    (SELECT count(*) FROM (SELECT 1 FROM operations_operation LIMIT %(most)s) AS capped)
"""


def view_counts() -> Mapping[View, int]:
    """How many each view holds; no count goes beyond one more than the cap."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS_SQL, {"most": COUNT_CAP + 1})
        return dict(zip(View, cursor.fetchone(), strict=True))


def _read(
    operations: QuerySet[Operation], stretches: Sequence[_Stretch], after: str, most: int
) -> list[tuple[_Stretch, Operation]]:
    start = _parsed(after, stretches)
    found: list[tuple[_Stretch, Operation]] = []
    for place, stretch in enumerate(stretches):
        if start and place < start[0]:
            continue
        rows = listed(operations).filter(stretch.where).order_by(*_order(stretch.keys))
        if start and place == start[0]:
            rows = rows.filter(_beyond(stretch.keys, start[1]))
        found += [(stretch, row) for row in rows[: most - len(found)]]
        if len(found) == most:
            break
    return found


def _order(keys: Iterable[tuple[str, bool]]) -> list[OrderBy]:
    # The index has its NULLs at the end of a rising deadline.
    return [
        F(name).desc()
        if falls
        else OrderBy(F(name), nulls_last=name.endswith("_closes_at") or None)
        for name, falls in keys
    ]


def _beyond(
    keys: Sequence[tuple[str, bool]], values: Sequence[Any]
) -> "GreaterThan[Any] | LessThan[Any]":
    """Rows after these values: `(a, b) > (x, y)`, an amount that falls being compared negated."""
    if all(falls for _, falls in keys):
        return LessThan(_Row(*(F(name) for name, _ in keys)), _Row(*map(Value, values)))
    signed = [-F(name) if falls else F(name) for name, falls in keys]
    given = [-value if falls else value for (_, falls), value in zip(keys, values, strict=True)]
    return GreaterThan(_Row(*signed), _Row(*map(Value, given)))


class _Row(Func):
    """`(a, b, c)`, to be compared as a whole. PostgreSQL, "Row Constructor Comparison"."""

    template = "(%(expressions)s)"
    output_field = BooleanField()


def _place(stretch: _Stretch, operation: Operation) -> str:
    values = []
    for name, _ in stretch.keys:
        value = getattr(operation, name)
        if isinstance(value, datetime):
            value = f"{value.astimezone(UTC):%Y%m%dT%H%M%S.%f}"
        values.append(str(value))
    return "~".join([stretch.letter, *values])


def _parsed(after: str, stretches: Sequence[_Stretch]) -> tuple[int, list[Any]] | None:
    letter, *texts = after.split("~")
    for place, stretch in enumerate(stretches):
        if stretch.letter == letter and len(texts) == len(stretch.keys):
            try:
                return place, [
                    _value(name, text) for (name, _), text in zip(stretch.keys, texts, strict=True)
                ]
            except ValueError:
                return None
    return None


def _value(name: str, text: str) -> Any:
    match name:
        case "id":
            return UUID(text)
        case "amount":
            if not re.fullmatch(r"[0-9]{1,15}", text):
                raise ValueError(text)
            return int(text)
        case _:
            return datetime.strptime(text, "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)


def _newest_evidence(ids: Sequence[UUID]) -> dict[UUID, Evidence]:
    rows = (
        Evidence.objects.filter(operation__in=ids)
        .order_by("operation", "-recorded_at", "-pk")
        .distinct("operation")
    )
    return {row.operation_id: row for row in rows}


def _row(operation: Operation, newest: Mapping[UUID, Evidence], now: datetime) -> QueueRow:
    evidence = newest.get(operation.pk)
    waits = bool(getattr(operation, "proposal_waits", False))
    looked = evidence is not None and evidence.source == EvidenceSource.LOOKUP
    return QueueRow(
        operation=operation,
        last_evidence=evidence,
        told=in_words(evidence, settled=operation.status in SETTLED) if evidence else None,
        since=operation.needs_person_since or operation.created_at,
        proposal_waits=waits,
        advice=advise(
            Situation(
                status=Status(operation.status),
                attention=flags(operation),
                proposal_waits=waits,
                window_closed=window_is_closed(operation, now),
                last_lookup=lookup_result(evidence.facts) if evidence and looked else "",
                lookups_made=operation.lookups_made,
                absence_holds=evidence is not None and looked and absence_holds(evidence.facts),
                next_check_at=operation.next_check_at,
                now=now,
            )
        ),
    )
