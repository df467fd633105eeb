"""The writes of one transaction, kept in memory and sent in one statement before its commit.

Outside `collecting` every write is sent as it happens, by the same code. Inside it a row that is
inserted and changed again is written once, as it is in the end; what is read from the database
meanwhile does not show it, unless `flush` was called. A transaction that handles hundreds of things
sends one statement for each table instead (`in_groups`).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import DataError, models, transaction
from psycopg.errors import DivisionByZero

from operations.models.chaining import chained, numbered, once
from operations.models.grouping import delete_many, insert_many, update_many
from operations.models.statements import count_together, run, run_and_commit
from operations.models.steps import Delete, Hold, Insert, Step, Update, Write


class RowMoved(Exception):
    """A row that was to be changed is not as it was read; the transaction must not be committed."""

    def __init__(self, row: models.Model) -> None:
        self.row = row
        super().__init__(f"{row} has changed since it was read.")


@dataclass
class Known:
    """What a transaction that was committed knows of a row, until somebody changes the row.

    `tip`, `spare_ids`, `spare_refund_ids` and `nobody_subscribed` as in `Collected`; `row` has a
    revision.
    """

    row: Any
    chain: str
    tip: tuple[int, str]
    spare_ids: list[int]
    spare_refund_ids: list[int]
    nobody_subscribed: bool


@dataclass
class Collected:
    """What one transaction has locked and is about to write.

    `locked` are the rows that were read under their lock, by id, so that a second part of the
    transaction works on the same objects. `tips` are the ends of audit chains that the lock
    protects, as (number, hash). `spare_ids` are ids that were drawn together with a read.
    `spare_refund_ids` are such ids for a provider's refund, where none was seen so far.
    `refunds` are the provider's, locked, by account and id. `without_proposals` are the locked
    operations for which nobody waits to be confirmed; `nobody_subscribed` to notices, as far as a
    look has told.
    """

    in_groups: bool = False
    steps: list[Step] = field(default_factory=list)
    planned: dict[int, Insert | Update] = field(default_factory=dict)
    locked: dict[UUID, Any] = field(default_factory=dict)
    tips: dict[str, tuple[int, str]] = field(default_factory=dict)
    spare_ids: list[int] = field(default_factory=list)
    spare_refund_ids: list[int] = field(default_factory=list)
    refunds: dict[tuple[int, str], Any] = field(default_factory=dict)
    without_proposals: set[UUID] = field(default_factory=set)
    nobody_subscribed: bool = False

    def known(self, row: Any, chain: str) -> Known:
        """What the next transaction may start from, once this one is committed."""
        return Known(
            row=row,
            chain=chain,
            tip=self.tips[chain],
            spare_ids=self.spare_ids,
            spare_refund_ids=self.spare_refund_ids,
            nobody_subscribed=self.nobody_subscribed,
        )

    def start_from(self, known: Known) -> None:
        """Work on a row as it was committed; whatever is written is written if it still is so."""
        self.steps.append(Hold(known.row, known.row.revision, known.nobody_subscribed))
        self.nobody_subscribed = known.nobody_subscribed
        self.locked[known.row.pk] = known.row
        # Nobody proposes how to close an operation that is still being sent.
        self.without_proposals.add(known.row.pk)
        self.tips[known.chain] = known.tip
        self.spare_ids += known.spare_ids
        self.spare_refund_ids += known.spare_refund_ids


class _Local(threading.local):
    collected: Collected | None = None


_local = _Local()


def current() -> Collected | None:
    """The transaction that collects its writes in this thread, if one does."""
    return _local.collected


@contextmanager
def collecting(*, in_groups: bool = False, known: Known | None = None) -> Iterator[Collected]:
    """A transaction that collects its writes; inside another one, a part of that.

    `known`: a row that is neither locked nor read again; when it has changed since, nothing is
    written and RowMoved raised.

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
        if known is not None:
            _local.collected.start_from(known)
        try:
            yield _local.collected
            flush(last=is_outermost)
        finally:
            _local.collected = None


def insert(row: models.Model, *, once: bool = False) -> None:
    """Insert this row, whose id is made by us or, if it has none, by the database.

    `once`: unless a unique one like it is there already.
    """
    _add(Insert(row, once))


def update(row: models.Model, names: Sequence[str], *, revision: int | None = None) -> None:
    """Write these fields of a row. Raises RowMoved, at once or when the writes are sent."""
    planned = _planned(row)
    match planned:
        case Insert():
            return  # It is inserted as it is in the end.
        case Update():
            planned.names.update(dict.fromkeys(names))
        case None:
            _add(Update(row, dict.fromkeys(names), revision))


def delete(row: models.Model) -> None:
    """Delete a row of a table whose rows may go."""
    _add(Delete(row))


def is_planned(row: models.Model) -> bool:
    """Whether a write of this row waits to be sent."""
    return _planned(row) is not None


def is_counted(row: models.Model) -> bool:
    """Whether a write of this row that raises its revision, or inserts it, waits to be sent."""
    planned = _planned(row)
    if isinstance(planned, Update):
        return planned.revision != getattr(row, "revision", None)
    return planned is not None


def execute(
    text: str, given: Sequence[Any] | Callable[[], Sequence[Any]], *, ending: str = ""
) -> None:
    """Run an UPDATE, or an INSERT of what a SELECT finds, in its turn.

    `text` ends in a WHERE clause; `ending` is what comes after it. Values that depend on how the
    rows are in the end are given as a function, which is called when the statement is sent.
    """
    _add(Write(text, given, ending))


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


def _planned(row: models.Model) -> Insert | Update | None:
    """The step that writes this row, which it keeps alive, and so the number that names it."""
    return _local.collected.planned.get(id(row)) if _local.collected else None


def _add(step: Step) -> None:
    if _local.collected is None:
        _send([step])
        return
    _local.collected.steps.append(step)
    if isinstance(step, Insert | Update):
        _local.collected.planned[id(step.row)] = step


def _send(steps: Sequence[Step], *, last: bool = False) -> None:
    """Send all steps as one statement, in their order; each update must find its row."""
    places, values = once([value for step in steps for value in step.values()])
    parts = tuple((step.sql(), step.ending(), isinstance(step, Update | Hold)) for step in steps)
    try:
        (run_and_commit if last else run)(chained(parts, places), values)
    except DataError as error:
        if isinstance(error.__cause__, DivisionByZero):
            updated = next(step.row for step in steps if isinstance(step, Update | Hold))
            raise RowMoved(updated) from None
        raise
    for step in steps:
        if isinstance(step, Insert):
            step.row._state.adding = False
            step.row._state.db = "default"


def _send_groups(steps: Sequence[Step]) -> None:
    """Send one statement for each table and kind, and check that each update found its row."""
    groups: dict[object, list[Any]] = {}
    for step in steps:
        match step:
            case Insert():
                groups.setdefault((Insert, type(step.row), step.names()), []).append(step)
            case Update() | Delete():
                groups.setdefault((type(step), type(step.row)), []).append(step)
            case Write():
                groups[id(step)] = [step]
    counts = count_together(*(_grouped(group) for group in groups.values()))
    for group, count in zip(groups.values(), counts, strict=True):
        if isinstance(group[0], Update) and count != len(group):
            raise RowMoved(group[0].row)


def _grouped(group: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    first, rows = group[0], [step.row for step in group if not isinstance(step, Write)]
    match first:
        case Insert():
            return insert_many(rows, first.names(), once=first.once)
        case Update():
            names = dict.fromkeys(name for step in group for name in step.names)
            return update_many(rows, tuple(names), [step.revision for step in group])
        case Delete():
            return delete_many(rows)
        case _:
            return numbered(first.sql() + first.ending()), first.values()
