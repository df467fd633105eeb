"""Chaining: several writes as one statement, in their order, with each value sent once."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

#: Types of values that several rows of one transaction have in common.
_SHARED = frozenset([UUID, datetime])


def once(values: Sequence[Any]) -> tuple[tuple[str, ...], list[Any]]:
    """What stands at the place of each value, and the values to send.

    Half of what a row has is empty, and its times and ids are those of the rows beside it: what
    stands in the text and what was sent before is not sent again.
    """
    places: list[str] = []
    sent: list[Any] = []
    numbers: dict[Any, str] = {}
    for value in values:
        if value is None:
            place = "NULL"
        elif isinstance(value, str) and not value:
            place = "''"
        elif type(value) in _SHARED:
            place = numbers.get(value, "")
            if not place:
                sent.append(value)
                place = numbers[value] = f"${len(sent)}"
        else:
            sent.append(value)
            place = f"${len(sent)}"
        places.append(place)
    return tuple(places), sent


@lru_cache(maxsize=1_024)
def chained(steps: tuple[tuple[str, str, bool], ...], places: tuple[str, ...]) -> str:
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
        returns = "" if sql.startswith("SELECT ") else " RETURNING 1"
        parts.append(f"step{place} AS ({sql}{after}{ending}{returns})")
    found = [
        f"1 / {count}" if must_find else count
        for count, (_, _, must_find) in zip(counts, steps, strict=True)
    ]
    return _placed(f"WITH {', '.join(parts)} SELECT {', '.join(found)}", places)


def numbered(text: str) -> str:
    return _placed(text, [f"${number}" for number in range(1, text.count("%s") + 1)])


def _placed(text: str, places: Sequence[str]) -> str:
    given = iter(places)
    return re.sub("%s", lambda _: next(given), text)
