"""How many operations the views and the saved lists hold, as far as it is counted."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from operations.domain.access import Accounts
from operations.queries.figures import COUNT_CAP
from operations.queries.parts import Asked, Part
from operations.queries.stretches import STRETCHES, Order, View


class Count(NamedTuple):
    """How many a list holds. `is_least`: or more, which are not counted."""

    number: int
    is_least: bool


def view_counts(
    person: str, now: datetime, kept: Sequence[Asked], accounts: Accounts = None
) -> list[Count]:
    """How many the views hold, without filters, and then these lists. One query.

    Nothing is counted beyond a thousand, and of a list with filters only the first thousand
    operations are looked through.
    """
    parts: list[str] = []
    values: list[Any] = []
    if accounts is None:
        parts, values = [_count(text) for text in _VIEW_COUNTS], [person, now]
    else:
        kept = [Asked(view=view, person=person, now=now, accounts=accounts) for view in View] + [
            *kept
        ]
    for asked in kept:
        counted = Part(asked, _COUNTED.get(asked.view, _BY_AGE), None).counted()
        parts.append(counted.sql)
        values += counted.values
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", values)
        found = cursor.fetchone()
    return [Count(min(fits, COUNT_CAP), seen > COUNT_CAP) for fits, seen in found]


_VIEW_COUNTS = (
    "operations_operation WHERE needs_person_since IS NOT NULL",
    "operations_claim WHERE holder = %s AND expires_at > %s",
    "operations_proposal WHERE state = 'waiting'",
    "operations_operation",
)
#: Counting wants no order, only an index that leads through what may fit.
_COUNTED = {View.DECIDE: STRETCHES[View.DECIDE][Order.OLDEST][0]}
_BY_AGE = STRETCHES[View.ALL][Order.NEWEST][0]


def _count(source: str) -> str:
    return (
        "(SELECT ARRAY[count(*), count(*)] FROM"  # noqa: S608 - constants
        f" (SELECT 1 FROM {source} LIMIT {COUNT_CAP + 1}) AS capped)"
    )
