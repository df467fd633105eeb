"""The parts of a list as SQL: what an index serves inside, and the filters around it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from operations.domain.access import Accounts
from operations.queries.figures import COUNT_CAP
from operations.queries.narrowing import (
    WAITS_FOR_SECOND,
    Condition,
    Narrow,
    claimed_by,
    conditions,
    of_accounts,
)
from operations.queries.stretches import STRETCHES, Order, Stretch, View, order_of

#: How many operations a page looks through for those that its filters leave.
LOOKED_THROUGH = 10_000


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which list: a view for a person, narrowed and ordered, of these accounts."""

    view: View
    person: str
    now: datetime
    order: Order | None = None
    narrow: Narrow = field(default_factory=Narrow)
    accounts: Accounts = None

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The parts of the list, in its order."""
        return STRETCHES[self.view][self.order or order_of(self.view, "")]


class Part:
    """A stretch of a list as SQL: what an index serves inside, what it does not around it."""

    def __init__(self, asked: Asked, stretch: Stretch, beyond: Sequence[Any] | None) -> None:
        self.stretch = stretch
        inside = [Condition(stretch.where)]
        outside = conditions(asked.narrow, asked.now)
        outside |= of_accounts(asked.accounts, asked.narrow)
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
        source, values = self._source()
        return Condition(
            f"SELECT {columns} FROM {source} ORDER BY {self.stretch.order_by} LIMIT {most}",  # noqa: S608
            values,
        )

    def counted(self) -> Condition:
        """Of the first thousand how many the filters leave, and how many were looked through."""
        return Condition(
            f"(SELECT ARRAY[count(*) FILTER (WHERE {self._around.sql}), count(*)]"  # noqa: S608
            f" FROM (SELECT * FROM operations_operation AS o WHERE {self._inside.sql}"
            f" ORDER BY {self.stretch.order_by} LIMIT {COUNT_CAP + 1}) AS o)",
            self._around.values + self._inside.values,
        )

    def bound(self, number: int) -> Condition:
        """The last row that is looked through, if there are so many."""
        return Condition(
            f"SELECT {number} AS stretch, {_KEYS} FROM operations_operation AS o"  # noqa: S608
            f" WHERE {self._inside.sql} ORDER BY {self.stretch.order_by}"
            f" OFFSET {LOOKED_THROUGH - 1} LIMIT 1",
            self._inside.values,
        )

    def _source(self) -> Condition:
        if not self.is_filtered:
            return Condition(
                f"operations_operation AS o WHERE {self._inside.sql}", self._inside.values
            )
        return Condition(
            f"(SELECT * FROM operations_operation AS o WHERE {self._inside.sql}"  # noqa: S608
            f" ORDER BY {self.stretch.order_by} LIMIT {LOOKED_THROUGH}) AS o"
            f" WHERE {self._around.sql}",
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
