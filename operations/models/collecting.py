"""The writes of one transaction, kept in memory and sent in one statement before its commit.

Outside `collecting` every write is sent as it happens, by the same code. Inside it a row that is
inserted and changed again is written once, as it is in the end; what is read from the database
meanwhile does not show it, unless `flush` was called. A transaction that handles hundreds of things
sends one statement for each table instead (`in_groups`).
"""

import itertools
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db import DataError, models, transaction
from psycopg.errors import DivisionByZero
from psycopg.types.json import Jsonb
from psycopg.types.numeric import Int8

from operations.models.grouping import column_of, delete_many, insert_many, update_many
from operations.models.statements import count_together, run, run_and_commit


class RowMoved(Exception):
    """A row that was to be changed is not as it was read; the transaction must not be committed."""

    def __init__(self, row: models.Model) -> None:
        self.row = row
        super().__init__(f"{row} has changed since it was read.")


@dataclass
class _Insert:
    """`once`: a row that is there already is left as it is."""

    row: models.Model
    once: bool = False

    def sql(self) -> str:
        return _insert_sql(type(self.row), self.names())

    def ending(self) -> str:
        return " ON CONFLICT DO NOTHING" if self.once else ""

    def values(self) -> list[Any]:
        return _values(self.row, self.names())

    def names(self) -> tuple[str, ...]:
        return _inserted(type(self.row), self.row.pk is not None)


@dataclass
class _Update:
    """`revision`: what the row must still be at, for a table that counts its changes."""

    row: models.Model
    names: dict[str, None]
    revision: int | None

    def sql(self) -> str:
        return _update_sql(type(self.row), tuple(self.names), self.revision is not None)

    def values(self) -> list[Any]:
        guard = [] if self.revision is None else [Int8(self.revision)]
        return [*_values(self.row, tuple(self.names)), self.row.pk, *guard]

    def ending(self) -> str:
        return ""


@dataclass
class _Delete:
    row: models.Model

    def sql(self) -> str:
        key = self.row._meta.pk.column
        return f'DELETE FROM "{self.row._meta.db_table}" WHERE "{key}" = %s'  # noqa: S608

    def values(self) -> list[Any]:
        return [self.row.pk]

    def ending(self) -> str:
        return ""


@dataclass
class _Statement:
    """A write of however many rows there are; see `execute`."""

    text: str
    given: Sequence[Any] | Callable[[], Sequence[Any]]
    end: str = ""

    def sql(self) -> str:
        return self.text

    def values(self) -> list[Any]:
        return list(self.given() if callable(self.given) else self.given)

    def ending(self) -> str:
        return self.end


_Step = _Insert | _Update | _Delete | _Statement


@dataclass
class Collected:
    """What one transaction has locked and is about to write.

    `locked` are the rows that were read under their lock, by id, so that a second part of the
    transaction works on the same objects. `tips` are the ends of audit chains that the lock
    protects, as (number, hash). `spare_ids` are ids that were drawn together with a read.
    `refunds` are the provider's, locked, by account and id. `without_proposals` are the locked
    operations for which nobody waits to be confirmed; `nobody_subscribed` to notices, as far as a
    look has told.
    """

    in_groups: bool = False
    steps: list[_Step] = field(default_factory=list)
    planned: dict[int, _Insert | _Update] = field(default_factory=dict)
    locked: dict[UUID, Any] = field(default_factory=dict)
    tips: dict[str, tuple[int, str]] = field(default_factory=dict)
    spare_ids: list[int] = field(default_factory=list)
    refunds: dict[tuple[int, str], Any] = field(default_factory=dict)
    without_proposals: set[UUID] = field(default_factory=set)
    nobody_subscribed: bool = False


class _Local(threading.local):
    collected: Collected | None = None


_local = _Local()


def current() -> Collected | None:
    """The transaction that collects its writes in this thread, if one does."""
    return _local.collected


@contextmanager
def collecting(*, in_groups: bool = False) -> Iterator[Collected]:
    """A transaction that collects its writes; inside another one, a part of that.

    `in_groups`: one statement for each table, in the order in which tables are first written to;
    for rows of one table the order is kept, and each is written once.

    Raises RowMoved, and the database's errors, at its end.
    """
    if _local.collected is not None:
        yield _local.collected
        return
    is_outermost = not transaction.get_connection().in_atomic_block
    with transaction.atomic():
        _local.collected = Collected(in_groups)
        try:
            yield _local.collected
            flush(last=is_outermost)
        finally:
            _local.collected = None


def insert(row: models.Model, *, once: bool = False) -> None:
    """Insert this row, whose id is made by us or, if it has none, by the database.

    `once`: unless a unique one like it is there already.
    """
    _add(_Insert(row, once))


def update(row: models.Model, names: Sequence[str], *, revision: int | None = None) -> None:
    """Write these fields of a row. Raises RowMoved, at once or when the writes are sent."""
    planned = _planned(row)
    match planned:
        case _Insert():
            return  # It is inserted as it is in the end.
        case _Update():
            planned.names.update(dict.fromkeys(names))
        case None:
            _add(_Update(row, dict.fromkeys(names), revision))


def delete(row: models.Model) -> None:
    """Delete a row of a table whose rows may go."""
    _add(_Delete(row))


def is_planned(row: models.Model) -> bool:
    """Whether a write of this row waits to be sent."""
    return _planned(row) is not None


def is_counted(row: models.Model) -> bool:
    """Whether a write of this row that raises its revision, or inserts it, waits to be sent."""
    planned = _planned(row)
    if isinstance(planned, _Update):
        return planned.revision != getattr(row, "revision", None)
    return planned is not None


def execute(
    text: str, given: Sequence[Any] | Callable[[], Sequence[Any]], *, ending: str = ""
) -> None:
    """Run an UPDATE, or an INSERT of what a SELECT finds, in its turn.

    `text` ends in a WHERE clause; `ending` is what comes after it. Values that depend on how the
    rows are in the end are given as a function, which is called when the statement is sent.
    """
    _add(_Statement(text, given, ending))


def flush(*, last: bool = False) -> None:
    """Send what was collected so far. `last`: the transaction may be committed with it."""
    collected = _local.collected
    if collected is None or not collected.steps:
        return
    steps, collected.steps = collected.steps, []
    collected.planned.clear()
    if collected.in_groups:
        _send_groups(steps)
    else:
        _send(steps, last=last)


def _planned(row: models.Model) -> _Insert | _Update | None:
    """The step that writes this row, which it keeps alive, and so the number that names it."""
    return _local.collected.planned.get(id(row)) if _local.collected else None


def _add(step: _Step) -> None:
    if _local.collected is None:
        _send([step])
        return
    _local.collected.steps.append(step)
    if isinstance(step, _Insert | _Update):
        _local.collected.planned[id(step.row)] = step


def _send(steps: Sequence[_Step], *, last: bool = False) -> None:
    """Send all steps as one statement, in their order; each update must find its row."""
    values = [value for step in steps for value in step.values()]
    parts = tuple((step.sql(), step.ending(), isinstance(step, _Update)) for step in steps)
    try:
        (run_and_commit if last else run)(_chained(parts), values)
    except DataError as error:
        if isinstance(error.__cause__, DivisionByZero):
            updated = next(step.row for step in steps if isinstance(step, _Update))
            raise RowMoved(updated) from None
        raise
    for step in steps:
        if isinstance(step, _Insert):
            step.row._state.adding = False
            step.row._state.db = "default"


def _send_groups(steps: Sequence[_Step]) -> None:
    """Send one statement for each table and kind, and check that each update found its row."""
    groups: dict[object, list[Any]] = {}
    for step in steps:
        match step:
            case _Insert():
                groups.setdefault((_Insert, type(step.row), step.names()), []).append(step)
            case _Update() | _Delete():
                groups.setdefault((type(step), type(step.row)), []).append(step)
            case _Statement():
                groups[id(step)] = [step]
    counts = count_together(*(_grouped(group) for group in groups.values()))
    for group, count in zip(groups.values(), counts, strict=True):
        if isinstance(group[0], _Update) and count != len(group):
            raise RowMoved(group[0].row)


def _grouped(group: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    first, rows = group[0], [step.row for step in group if not isinstance(step, _Statement)]
    match first:
        case _Insert():
            return insert_many(rows, first.names(), once=first.once)
        case _Update():
            names = dict.fromkeys(name for step in group for name in step.names)
            return update_many(rows, tuple(names), [step.revision for step in group])
        case _Delete():
            return delete_many(rows)
        case _:
            return _numbered(first.sql() + first.ending()), first.values()


@cache
def _chained(steps: tuple[tuple[str, str, bool], ...]) -> str:
    """One statement out of several: text, ending, and whether it must find its one row.

    PostgreSQL runs the parts of such a statement in an order of its own, unless one reads what
    another returns. Each part here counts the rows of the part before it, so that triggers find
    what was written before (an attempt its operation, an operation its attempt finished). A part
    that did not find its row makes the whole fail, by a division by zero: a commit may follow.
    """
    counts = [f"(SELECT count(*) FROM step{place})" for place in range(len(steps))]  # noqa: S608
    parts = []
    for place, (sql, ending, _) in enumerate(steps):
        joint = "AND" if " WHERE " in sql else "WHERE"
        after = f" {joint} {counts[place - 1]} >= 0" if place else ""
        parts.append(f"step{place} AS ({sql}{after}{ending} RETURNING 1)")
    found = [
        f"1 / {count}" if must_find else count
        for count, (_, _, must_find) in zip(counts, steps, strict=True)
    ]
    return _numbered(f"WITH {', '.join(parts)} SELECT {', '.join(found)}")


def _numbered(text: str) -> str:
    numbers = itertools.count(1)
    return re.sub("%s", lambda _: f"${next(numbers)}", text)


@cache
def _inserted(model: type[models.Model], has_id: bool) -> tuple[str, ...]:
    """The fields that an INSERT gives: all but an id that the database is to make."""
    fields = model._meta.concrete_fields
    return tuple(field.attname for field in fields if has_id or not field.primary_key)


@cache
def _insert_sql(model: type[models.Model], names: tuple[str, ...]) -> str:
    given = ", ".join(f'"{column_of(model, name)}"' for name in names)
    places = ", ".join(["%s"] * len(names))
    return f'INSERT INTO "{model._meta.db_table}" ({given}) SELECT {places}'


@cache
def _update_sql(model: type[models.Model], names: tuple[str, ...], counted: bool) -> str:
    sets = ", ".join(f'"{column_of(model, name)}" = %s' for name in names)
    key = model._meta.pk.column
    guard = ' AND "revision" = %s' if counted else ""
    return f'UPDATE "{model._meta.db_table}" SET {sets} WHERE "{key}" = %s{guard}'  # noqa: S608


def _values(row: models.Model, names: tuple[str, ...]) -> list[Any]:
    read, converts = _reader(type(row), names)
    values = [getattr(row, names[0])] if len(names) == 1 else list(read(row))
    for place, convert in converts:
        if values[place] is not None:
            values[place] = convert(values[place])
    return values


@cache
def _reader(
    model: type[models.Model], names: tuple[str, ...]
) -> tuple[Callable[[Any], Sequence[Any]], list[tuple[int, Callable[[Any], Any]]]]:
    """How to read these fields, and which of them need a type that does not vary by value."""
    converts: list[tuple[int, Callable[[Any], Any]]] = []
    for place, name in enumerate(names):
        kind = model._meta.get_field(name)
        while isinstance(kind, models.ForeignKey):
            kind = kind.target_field
        if isinstance(kind, models.JSONField):
            converts.append((place, Jsonb))
        elif isinstance(kind, models.IntegerField):
            converts.append((place, Int8))
    return attrgetter(*names), converts
