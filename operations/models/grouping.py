"""Many rows of one table in one statement: the values go as one JSON text, typed by their columns.

For transactions that handle hundreds of things at once; `collecting` says what is written.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

import orjson
from django.db import connection, models

#: A statement and its values.
Text = tuple[str, Sequence[Any]]


def insert_many(rows: Sequence[models.Model], names: tuple[str, ...], *, once: bool) -> Text:
    """Insert these rows. `once`: a row that is there already is left as it is."""
    model, shared = type(rows[0]), _shared(rows, names)
    ending = " ON CONFLICT DO NOTHING" if once else ""
    own = tuple(name for name in names if name not in shared)
    given = [as_json(rows, own), *_of_first(rows, shared)]
    return _insert_sql(model, own, shared) + ending, given


def update_many(
    rows: Sequence[models.Model], names: tuple[str, ...], revisions: Sequence[int | None]
) -> Text:
    """Write these fields of each row. `revisions`: what each must still be at, or all None."""
    model, shared = type(rows[0]), _shared(rows, names)
    own = tuple(name for name in names if name not in shared)
    values = _records(rows, own)
    is_counted = revisions[0] is not None
    for record, row, revision in zip(values, rows, revisions, strict=True):
        record["_id"] = row.pk
        if is_counted:
            record["_was"] = revision
    return _update_sql(model, own, shared, is_counted), [_dumps(values), *_of_first(rows, shared)]


#: So many rows must have a value in common before it is sent once for all of them.
_MANY = 50
_SIMPLE = (str, int, datetime, type(None))


def _shared(rows: Sequence[models.Model], names: tuple[str, ...]) -> tuple[str, ...]:
    """The fields whose value is the same in all of these rows, which are many."""
    if len(rows) < _MANY:
        return ()
    # What equals in Python may differ as JSON: what has parts counts as the same object only.
    first, last, fields = rows[0].__dict__, rows[-1].__dict__, [row.__dict__ for row in rows]
    return tuple(
        name
        for name in names
        if first[name] is last[name]
        or (not first[name] and not last[name])
        or (isinstance(first[name], _SIMPLE) and first[name] == last[name])
        if _is_one([row[name] for row in fields])
    )


def _is_one(values: Sequence[Any]) -> bool:
    first = values[0]
    if isinstance(first, int):  # True is 1, and not the same JSON.
        return all(type(value) is type(first) and value == first for value in values)
    if isinstance(first, _SIMPLE):
        return values.count(first) == len(values)
    if not first:  # Empty ones of a kind are the same.
        return all(type(value) is type(first) and not value for value in values)
    return all(value is first for value in values)


def _of_first(rows: Sequence[models.Model], shared: tuple[str, ...]) -> list[str]:
    """The values that all have, as `$2`."""
    return [_dumps(_records(rows[:1], shared)[0])] if shared else []


def delete_many(rows: Sequence[models.Model]) -> Text:
    """Delete these rows."""
    model = type(rows[0])
    key = model._meta.pk.column
    text = f'DELETE FROM "{model._meta.db_table}" WHERE "{key}" = ANY($1)'  # noqa: S608
    return text, [[row.pk for row in rows]]


def as_json(rows: Sequence[models.Model], names: tuple[str, ...]) -> str:
    """These fields of all rows, for `recordset`."""
    return _dumps(_records(rows, names))


def recordset(model: type[models.Model], names: tuple[str, ...], *more: str) -> str:
    """`$1` as rows of these fields, called `given`; `more` are further columns with their types."""
    fields = [f'"{column_of(model, name)}" {_type(model, name)}' for name in names]
    return f"json_to_recordset($1::text::json) AS given({', '.join([*fields, *more])})"


def column_of(model: type[models.Model], name: str) -> str:
    """The column of a field, which may be named with its `_id`."""
    return _field(model, name).column


def _records(rows: Sequence[models.Model], names: tuple[str, ...]) -> list[dict[str, Any]]:
    model = type(rows[0])
    columns = _columns(model, names)
    return [
        {column: fields[name] for column, name in columns}
        for fields in (row.__dict__ for row in rows)
    ]


def _dumps(records: list[dict[str, Any]] | dict[str, Any]) -> str:
    # Ids and times, which JSON does not know, are texts that PostgreSQL reads.
    return orjson.dumps(records, default=str).decode()


@cache
def _columns(model: type[models.Model], names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((column_of(model, name), name) for name in names)


@lru_cache(maxsize=256)
def _insert_sql(model: type[models.Model], own: tuple[str, ...], shared: tuple[str, ...]) -> str:
    columns = ", ".join(f'"{column_of(model, name)}"' for name in (*own, *shared))
    return (
        f'INSERT INTO "{model._meta.db_table}" ({columns})'  # noqa: S608 - our own table
        f" SELECT {columns} FROM {recordset(model, own)}{_once_for_all(model, shared)}"
    )


@lru_cache(maxsize=256)
def _update_sql(
    model: type[models.Model], own: tuple[str, ...], shared: tuple[str, ...], is_counted: bool
) -> str:
    sets = ", ".join(
        f'"{column_of(model, name)}" = {where}."{column_of(model, name)}"'
        for where, names in (("given", own), ("shared", shared))
        for name in names
    )
    pk = model._meta.pk
    more = [f'"_id" {_type(model, pk.attname)}', *(['"_was" bigint'] if is_counted else [])]
    guard = ' AND own."revision" = given."_was"' if is_counted else ""
    return (
        f'UPDATE "{model._meta.db_table}" AS own SET {sets}'  # noqa: S608 - our own table
        f" FROM {recordset(model, own, *more)}{_once_for_all(model, shared)}"
        f' WHERE own."{pk.column}" = given."_id"{guard}'
    )


def _once_for_all(model: type[models.Model], shared: tuple[str, ...]) -> str:
    """`$2` as one row of these fields, beside each row of `given`."""
    if not shared:
        return ""
    fields = ", ".join(f'"{column_of(model, name)}" {_type(model, name)}' for name in shared)
    return f", json_to_record($2::text::json) AS shared({fields})"


def _type(model: type[models.Model], name: str) -> str:
    field = _field(model, name)
    # The type of a key that numbers itself is the one of what refers to it.
    return str(getattr(field, "rel_db_type" if field.primary_key else "db_type")(connection))


def _field(model: type[models.Model], name: str) -> "models.Field[Any, Any]":
    field = model._meta.get_field(name)
    assert isinstance(field, models.Field)  # noqa: S101 - no relation of another table
    return field
