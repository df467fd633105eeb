"""Steps: the single writes that `collecting` puts together, each as text and values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from django.db import models
from psycopg.types.json import Jsonb
from psycopg.types.numeric import Int8

from operations.models.grouping import column_of

#: Whether a notice of anything has to be written.
SOMEBODY_SUBSCRIBED = """EXISTS (
    SELECT FROM operations_subscription AS subscriber WHERE subscriber.disabled_at IS NULL
)"""


@dataclass
class Insert:
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
class Update:
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
class Delete:
    row: models.Model

    def sql(self) -> str:
        key = self.row._meta.pk.column
        return f'DELETE FROM "{self.row._meta.db_table}" WHERE "{key}" = %s'  # noqa: S608

    def values(self) -> list[Any]:
        return [self.row.pk]

    def ending(self) -> str:
        return ""


@dataclass
class Hold:
    """Lock this row, which must still be at the revision that it was committed with.

    `nobody_subscribed`: and nobody must have subscribed to notices since.
    """

    row: Any
    revision: int
    nobody_subscribed: bool

    def sql(self) -> str:
        table, key = self.row._meta.db_table, self.row._meta.pk.column
        still = f" AND NOT ({SOMEBODY_SUBSCRIBED})" if self.nobody_subscribed else ""
        return f'SELECT 1 FROM "{table}" WHERE "{key}" = %s AND "revision" = %s{still}'  # noqa: S608

    def values(self) -> list[Any]:
        return [self.row.pk, Int8(self.revision)]

    def ending(self) -> str:
        return " FOR NO KEY UPDATE"


@dataclass
class Write:
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


Step = Insert | Update | Delete | Hold | Write


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
