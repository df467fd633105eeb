"""What one act writes: rows by table, statements, and commits, as the database counts them."""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext


def written_by(act: Callable[[], object]) -> dict[str, Any]:
    """Rows inserted and updated, statements and commits of one act, which runs three times."""
    act()
    with CaptureQueriesContext(connection) as sent:
        act()
    before = _rows()
    act()
    after = _rows()
    texts = [query["sql"] for query in sent.captured_queries]
    return {
        "inserted": _difference(before, after, 0),
        "updated": _difference(before, after, 1),
        "statements": sum(text not in ("BEGIN", "COMMIT") for text in texts),
        "commits": texts.count("COMMIT"),
    }


def _rows() -> dict[str, tuple[int, int]]:
    with connection.cursor() as cursor:
        # What this session has counted is sent to the shared figures, and those are read anew.
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT relname, n_tup_ins, n_tup_upd FROM pg_stat_user_tables"
            " WHERE relname LIKE 'operations_%'"
        )
        return {name: (inserted, updated) for name, inserted, updated in cursor.fetchall()}


def _difference(
    before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]], which: int
) -> dict[str, int]:
    changes = {
        name.removeprefix("operations_"): after[name][which] - before.get(name, (0, 0))[which]
        for name in sorted(after)
    }
    return {name: change for name, change in changes.items() if change}
