"""A place in a list that runs from the newest to the oldest, as an address can carry it."""

import re
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.db.models import BooleanField, F, Func, Model, QuerySet, Value
from django.db.models.lookups import LessThan


class _Pair(Func):
    """`(a, b)`, to be compared as a whole."""

    template = "(%(expressions)s)"
    output_field: Any = BooleanField()


_Row = TypeVar("_Row", bound=Model)


def beyond(rows: QuerySet[_Row], time: str, after: str) -> QuerySet[_Row]:
    """The rows behind the place `after`, by the field `time` and the key; all for no place."""
    found = re.fullmatch(r"(\d{8}T\d{6}\.\d{6})~(\d{1,18})", after)
    if not found:
        return rows
    try:
        at = datetime.strptime(found[1], "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return rows
    here = _Pair(Value(at), Value(int(found[2])))
    return rows.filter(LessThan(_Pair(F(time), F("pk")), here))


def place(at: datetime, pk: int) -> str:
    """The place of a row."""
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S.%f}~{pk}"
