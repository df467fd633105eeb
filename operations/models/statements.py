"""Hand-written statements on Django's connection, prepared by the server once a connection.

For the path that every refund takes; everything else is the ORM's. A statement runs inside the
transaction that is open, its errors are Django's, and query counts see it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import orjson
import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.base import ModelState
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format, TransactionStatus

_Row = TypeVar("_Row", bound=models.Model)
#: A text with `$1`, `$2` and its values.
Statement = tuple[str, Sequence[Any]]


class _JsonbLoader(Loader):
    """JSON of binary answers, read several times as fast; a byte tells its version."""

    format = Format.BINARY

    def load(self, data: Buffer) -> Any:
        return orjson.loads(memoryview(data)[1:])


# For connections made from now on. Django reads its own answers, which are texts.
psycopg.adapters.register_loader("jsonb", _JsonbLoader)


class _PreparedCursor(psycopg.RawCursor[tuple[Any, ...]]):
    """Sends values (`$1`, `$2`) beside the text, so that the server plans the text once.

    Where a pooler can't hold prepared statements, `prepare_threshold` None switches that off.
    """

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        # Binary answers are read several times as fast, times and ids above all.
        return super().execute(query, params, prepare=True, binary=True, **options)


def run(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run one statement that returns rows. Raises Django's database errors."""
    database = connections[DEFAULT_DB_ALIAS]
    cursor = _cursor(database)
    _send(database, cursor, sql, values)
    return cursor.fetchall()


def run_and_commit(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run the last statement of a transaction and commit it, in one round trip; its rows.

    When the statement fails, the server skips the commit. Django's own commit, and whatever waits
    for it, comes after this one and finds nothing left to send. A statement that is alone in its
    transaction commits itself.
    """
    database = connections[DEFAULT_DB_ALIAS]
    cursor = _cursor(database)
    if _has_yet_to_begin(database.connection):
        with _committing_itself(database.connection):
            _send(database, cursor, sql, values)
        return cursor.fetchall()
    with database.wrap_database_errors, database.connection.pipeline():
        _send(database, cursor, sql, values)
        _cursor(database).execute("COMMIT")
    return cursor.fetchall()


def run_together(*statements: Statement) -> list[list[tuple[Any, ...]]]:
    """Run several in one round trip, each after the one before it; the rows of each.

    A statement takes its view of the data when its turn comes, not when it is sent. When they are
    the first of a transaction, it begins in the same round trip.
    """
    database = connections[DEFAULT_DB_ALIAS]
    cursors = [_cursor(database) for _ in statements]
    with database.wrap_database_errors, database.connection.pipeline():
        _begin(database.connection)
        for cursor, (sql, values) in zip(cursors, statements, strict=True):
            _send(database, cursor, sql, values)
    return [cursor.fetchall() for cursor in cursors]


def count_together(*statements: Statement) -> list[int]:
    """Run several writes in one round trip, in order; how many rows each of them wrote."""
    database = connections[DEFAULT_DB_ALIAS]
    cursors = [_cursor(database) for _ in statements]
    with database.wrap_database_errors, database.connection.pipeline():
        for cursor, (sql, values) in zip(cursors, statements, strict=True):
            _send(database, cursor, sql, values)
    return [cursor.rowcount for cursor in cursors]


def _begin(connection: psycopg.Connection) -> None:
    """Let a transaction that has yet to begin do so in the pipeline that is open.

    psycopg sends BEGIN by itself before the first statement, but waits for its answer.
    """
    if _has_yet_to_begin(connection):
        with _committing_itself(connection):
            _PreparedCursor(connection).execute(connection._get_tx_start_command())


def _has_yet_to_begin(connection: psycopg.Connection) -> bool:
    idle = connection.info.transaction_status == TransactionStatus.IDLE
    return idle and not connection.autocommit


@contextmanager
def _committing_itself(connection: psycopg.Connection) -> Iterator[None]:
    """Keep psycopg from beginning a transaction before what is sent here."""
    connection._autocommit = True
    try:
        yield
    finally:
        connection._autocommit = False


def _cursor(database: Any) -> _PreparedCursor:
    if database.connection is None:
        database.ensure_connection()
    return _PreparedCursor(database.connection)


def _send(database: Any, cursor: _PreparedCursor, sql: str, values: Sequence[Any]) -> None:
    """Execute, behind Django's wrappers when somebody watches the queries."""
    if database.queries_logged:
        database.make_debug_cursor(cursor).execute(sql, values)
    elif database.execute_wrappers:
        database.make_cursor(cursor).execute(sql, values)
    else:
        with database.wrap_database_errors:
            cursor.execute(sql, values)


def columns(model: type[models.Model], alias: str) -> str:
    """All columns of a table for a SELECT, in the order that `build` expects."""
    return ", ".join(f'{alias}."{field.column}"' for field in model._meta.concrete_fields)


def width(model: type[models.Model]) -> int:
    """How many columns that are."""
    return len(model._meta.concrete_fields)


def build(model: type[_Row], values: Sequence[Any]) -> _Row:
    """The row of a table from these columns."""
    return _made(model, zip(_names(model), values, strict=True), adding=False)


def made(model: type[_Row], **values: Any) -> _Row:
    """A new row of these values, named as the columns; the model's defaults for the others.

    Several times as fast as calling the model, which looks for related rows.
    """
    defaults, made_anew = _defaults(model)
    anew = {name: make() for name, make in made_anew if name not in values}
    return _made(model, {**defaults, **anew, **values}, adding=True)


def _made(model: type[_Row], values: Any, *, adding: bool) -> _Row:
    row = model.__new__(model)
    row._state = ModelState()
    row._state.adding = adding
    row._state.db = None if adding else DEFAULT_DB_ALIAS
    row.__dict__.update(values)
    return row


@cache
def _names(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in model._meta.concrete_fields)


@cache
def _defaults(
    model: type[models.Model],
) -> tuple[dict[str, Any], tuple[tuple[str, Callable[[], Any]], ...]]:
    """What a new row has where nothing is said: values, and what makes them anew for each row."""
    fields = model._meta.concrete_fields
    anew = {
        field.attname: field.default
        for field in fields
        if field.has_default() and callable(field.default)
    }
    values = {field.attname: field.get_default() for field in fields if field.attname not in anew}
    return values, tuple(anew.items())
