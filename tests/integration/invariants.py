"""Trying with plain SQL what the database has to refuse."""

import re
from typing import Any

import psycopg
import pytest

from .rows import Rows

RAISED = "P0001"
UNIQUE = "23505"
CHECK = "23514"

_TRIGGER = re.compile(r"function (?:\w+\.)?pgtrigger_(\w+)_[0-9a-f]{5}\(\)")


class refused:
    """The block is refused by this constraint or trigger, and nothing is changed by it."""

    def __init__(self, rows: Rows, by: str, sqlstate: str = RAISED) -> None:
        self._rows, self._by, self._sqlstate = rows, by, sqlstate

    def __enter__(self) -> None:
        self._before = self._rows.everything()
        self._rows.text("SAVEPOINT attempted")

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is None:
            pytest.fail(f"{self._by} did not refuse this.")
        if not isinstance(error, psycopg.Error):
            return False
        self._rows.text("ROLLBACK TO SAVEPOINT attempted")
        assert (error.sqlstate, name_of_refusal(error)) == (self._sqlstate, self._by)
        assert self._rows.everything() == self._before
        return True


def name_of_refusal(error: psycopg.Error) -> str:
    """The constraint, or the trigger by its function's name."""
    found = _TRIGGER.search(error.diag.context or "")
    return error.diag.constraint_name or (found.group(1) if found else str(error))
