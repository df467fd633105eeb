"""The orders of lists, as stretches of indexes, and the places in them where pages begin.

An order that mixes directions and has a NULL in it (unknown first, key deadline with none last,
amount falling) is no one range of an index. So a list is read as up to four stretches, each a range
of one index that begins after one comparison of rows: `(a, b, id) > (x, y, z)`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from operations.queries.narrowing import Condition


class View(StrEnum):
    """What a list draws from."""

    DECIDE = "decide"
    MINE = "mine"
    SECOND = "second"
    ALL = "all"


class Order(StrEnum):
    """How a list is sorted."""

    URGENCY = "urgency"
    OLDEST = "oldest"
    NEWEST = "newest"
    AMOUNT = "amount"


class Placed(Protocol):
    """What says where in an order a row stands."""

    @property
    def key_window_closes_at(self) -> datetime | None: ...
    @property
    def amount(self) -> int: ...
    @property
    def currency(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def needs_person_since(self) -> datetime | None: ...
    @property
    def id(self) -> UUID: ...


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """One range of an index. `keys` rise or, all of them, fall; the last is the id.

    `narrows`: the filters that an index has in front of the keys, so that they may stand beside
    `where`; the first one that is set does. `within`: what `where` says of such a filter already.
    """

    letter: str
    where: str
    keys: tuple[str, ...]
    sorted_by: str = ""
    falls: bool = False
    narrows: tuple[str, ...] = ()
    but: str = ""

    @property
    def order_by(self) -> str:
        """The order of the index, which may begin with a column that is NULL all through."""
        names = ([self.sorted_by] if self.sorted_by else []) + [_SQL[key] for key in self.keys]
        return ", ".join(f"{name} DESC" if self.falls else name for name in names)

    def beyond(self, values: Sequence[Any]) -> Condition:
        """Rows after the one with these values."""
        names = ", ".join(_SQL[key] for key in self.keys)
        holders = ", ".join(["%s"] * len(self.keys))
        return Condition(f"({names}) {'<' if self.falls else '>'} ({holders})", tuple(values))

    def place_of(self, row: Placed) -> str:
        """Where the page after this row begins."""
        return "~".join([self.letter, *(_text(key, row) for key in self.keys)])


_SQL: Mapping[str, str] = {
    "deadline": "o.key_window_closes_at",
    # As the indexes have it: rising, so that all keys rise.
    "amount": "(o.amount * -1)",
    "currency": "o.currency",
    "created": "o.created_at",
    "since": "o.needs_person_since",
    "id": "o.id",
}
_UNKNOWN = "o.status = 'unknown'"
_FLAGGED = "NOT (o.attention = '{}')"
_WAITING = "o.needs_person_since IS NOT NULL"
_NO_WINDOW = _SQL["deadline"]
_NARROW = ("reason", "account", "agent")


def _by_urgency(others: str, *, but: str = "", narrows: tuple[str, ...]) -> tuple[Stretch, ...]:
    """Unknown first, then the others; of each those with a deadline first."""
    has, has_not = f"{_NO_WINDOW} IS NOT NULL", f"{_NO_WINDOW} IS NULL"
    keys, rest = ("deadline", "amount", "id"), ("amount", "id")
    return (
        Stretch(letter="a", where=f"{_UNKNOWN} AND {has}", keys=keys, narrows=narrows),
        Stretch(
            letter="b",
            where=f"{_UNKNOWN} AND {has_not}",
            keys=rest,
            sorted_by=_NO_WINDOW,
            narrows=narrows,
        ),
        Stretch(letter="c", where=f"{others} AND {has}", keys=keys, but=but),
        Stretch(
            letter="d", where=f"{others} AND {has_not}", keys=rest, sorted_by=_NO_WINDOW, but=but
        ),
    )


_SETTLED_OR_OPEN = "o.status <> 'unknown'"
# What is flagged and unknown stands with the unknown.
_DECIDE = _by_urgency(_FLAGGED, but=_SETTLED_OR_OPEN, narrows=_NARROW)
_GIVEN = _by_urgency(_SETTLED_OR_OPEN, narrows=())
_CREATED = ("created", "id")
_SINCE = ("since", "id")

STRETCHES: Mapping[View, Mapping[Order, tuple[Stretch, ...]]] = {
    View.DECIDE: {
        Order.URGENCY: _DECIDE,
        Order.OLDEST: (Stretch(letter="o", where=_WAITING, keys=_SINCE),),
        Order.NEWEST: (Stretch(letter="n", where=_WAITING, keys=_SINCE, falls=True),),
        Order.AMOUNT: (
            Stretch(
                letter="m", where=_WAITING, keys=("currency", "amount", "id"), narrows=("currency",)
            ),
        ),
    },
    View.MINE: {Order.URGENCY: _GIVEN},
    View.SECOND: {Order.URGENCY: _GIVEN},
    View.ALL: {
        Order.NEWEST: (
            Stretch(letter="n", where="TRUE", keys=_CREATED, falls=True, narrows=("status",)),
        ),
        Order.OLDEST: (Stretch(letter="o", where="TRUE", keys=_CREATED, narrows=("status",)),),
    },
}


def order_of(view: View, text: str) -> Order:
    """The order that this view has under this name, or its usual one."""
    orders = STRETCHES[view]
    return Order(text) if text in orders else next(iter(orders))


def parsed(after: str, stretches: Sequence[Stretch]) -> tuple[int, list[Any]] | None:
    """Which stretch a place is in, and its values there; None for what can't be read."""
    letter, *texts = after.split("~")
    for number, stretch in enumerate(stretches):
        if stretch.letter == letter and len(texts) == len(stretch.keys):
            try:
                return number, [
                    _value(key, text) for key, text in zip(stretch.keys, texts, strict=True)
                ]
            except ValueError:
                return None
    return None


def _text(key: str, row: Placed) -> str:
    match key:
        case "amount":
            return str(row.amount)
        case "currency":
            return row.currency
        case "id":
            return str(row.id)
        case "deadline":
            at = row.key_window_closes_at
        case "since":
            at = row.needs_person_since
        case _:
            at = row.created_at
    if at is None:
        raise ValueError(f"A row without {key} does not stand in this stretch.")
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S.%f}"


def _value(key: str, text: str) -> Any:
    match key:
        case "id":
            return UUID(text)
        case "amount":
            if not re.fullmatch(r"[0-9]{1,15}", text):
                raise ValueError(text)
            return -int(text)
        case "currency":
            if not re.fullmatch(r"[a-z]{3}", text):
                raise ValueError(text)
            return text
        case _:
            return datetime.strptime(text, "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
