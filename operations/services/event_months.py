"""The months that events are filed in: made ahead, and removed whole when they are old.

A month is removed only when nothing in it waits or is stuck and no delivery of it came lately.
Its events are counted and written out while others come in; what is done while nothing can be
received takes the same short time however large the month is.
With an archive folder every event is written out first (gzip, one JSON object a line), synced and
read back; what was removed stands in the audit trail.
"""

import base64
import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction
from psycopg import sql

from operations.models import AuditEntry
from operations.services.actors import TIDY
from operations.services.engine import Engine

log = structlog.get_logger(__name__)

#: How many months there are ahead of the one that is.
MONTHS_AHEAD = 3
_NAME = re.compile(r"operations_webhookevent_(?:(\d{4})_(\d{2})|rest)")
#: So many events, and about so many bytes of them, are read at once.
_AT_ONCE = 500
_BYTES_AT_ONCE = 4 * 2**20


class ArchiveUnsound(Exception):
    """What was written is not what was read back; nothing was removed."""


@dataclass(frozen=True)
class Part:
    """One partition. `month` is its first moment, None for the one that takes everything else."""

    table: str
    month: datetime | None

    @property
    def label(self) -> str:
        """As files and people call it."""
        return self.month.strftime("%Y-%m") if self.month else "rest"


def make_months(*, engine: Engine) -> list[str]:
    """Make the partitions of this month and the next ones; answers what was made.

    A month whose events came before its partition stays where they are, with everything else.
    """
    known = {part.month for part in _parts()}
    month, made = _first_of(engine.clock()), []
    for _ in range(MONTHS_AHEAD + 1):
        if month not in known and _make(month):
            made.append(month.strftime("%Y-%m"))
        month = _first_of(month + timedelta(days=32))
    return made


def remove_old_months(*, engine: Engine, days: int, archive: Path | None) -> list[str]:
    """Remove the months that ended more than `days` ago; answers what was removed.

    One that can't be removed delays no other; it is tried again with the next call.
    """
    before, removed = engine.clock() - timedelta(days=days), []
    for part in _parts():
        if part.month is not None and _first_of(part.month + timedelta(days=32)) > before:
            continue
        try:
            if _remove(engine, part, before, archive):
                removed.append(part.label)
        except (DatabaseError, OSError, ArchiveUnsound):
            log.exception("events_not_removed", month=part.label)
    return removed


def _make(month: datetime) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '5s'")
            cursor.execute("SELECT reconcile_make_month(%s)", [month])
    except DatabaseError as error:
        log.warning("month_not_made", month=f"{month:%Y-%m}", error=str(error))
        return False
    return True


def _remove(engine: Engine, part: Part, before: datetime, archive: Path | None) -> bool:
    if not _is_done_with(part, before):
        return False
    _index_last_received(part)
    count = _count(part)
    if not count:
        if part.month is None:
            return False
        archive = None
    written = _archive(part, archive, engine.clock()) if archive is not None else None
    if written and written["events"] != count:
        return False
    with transaction.atomic(), connection.cursor() as cursor:
        # Whoever stores waits behind the one who waits for this lock.
        cursor.execute("SET LOCAL lock_timeout = '1s'")
        # Nothing is counted again: what came or was repeated since then was received since then.
        cursor.execute("SELECT reconcile_remove_month(%s, %s)", [part.table, before])
        if not cursor.fetchone()[0]:
            return False
        AuditEntry.append(
            operation_id=None,
            actor=TIDY,
            action="events_removed",
            now=engine.clock(),
            before={"month": part.label, "events": count},
            after=written or {},
            reason="Older than the retention of events.",
        )
    return True


def _index_last_received(part: Part) -> None:
    """So that whether anything came lately is known at once, under the lock that holds up all.

    Only a part that is about to go has this index; receiving does not pay for it. While it is made
    an event that is delivered again after that long waits a moment.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '1s'")
        cursor.execute("SELECT reconcile_index_month(%s)", [part.table])


def _is_done_with(part: Part, before: datetime) -> bool:
    """Nothing of it waits or is stuck, and nothing of it came since."""
    statement = sql.SQL(
        "SELECT NOT EXISTS (SELECT 1 FROM operations_inboxitem AS item"
        " JOIN {table} AS event ON event.id = item.event_id)"
        " AND NOT EXISTS (SELECT 1 FROM {table} WHERE last_received_at >= %s)"
    ).format(table=_table(part))
    with connection.cursor() as cursor:
        cursor.execute(statement, [before])
        return bool(cursor.fetchone()[0])


def _archive(part: Part, folder: Path, now: datetime) -> dict[str, Any]:
    """Write the events of a part to a file of their own, and see that they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events-{part.label}-{now:%Y%m%dT%H%M%S}.ndjson.gz"
    growing = path.with_suffix(".part")
    digest, count = hashlib.sha256(), 0
    try:
        with growing.open("wb") as file:
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
                for line in _lines(part):
                    packed.write(line)
                    digest.update(line)
                    count += 1
            file.flush()
            os.fsync(file.fileno())
        if _read_back(growing) != (count, digest.hexdigest()):
            raise ArchiveUnsound(str(growing))
        growing.rename(path)
    except BaseException:
        with suppress(OSError):
            growing.unlink()
        raise
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
    return {"file": path.name, "events": count, "sha256": digest.hexdigest()}


def _read_back(path: Path) -> tuple[int, str]:
    digest, count = hashlib.sha256(), 0
    with gzip.open(path) as packed:
        for line in packed:
            json.loads(line)
            digest.update(line)
            count += 1
    return count, digest.hexdigest()


def _lines(part: Part) -> Iterator[bytes]:
    """One event a line, oldest first: its raw bytes, its times, and what became of it."""
    statement = sql.SQL(
        "SELECT event.id, event.event_id, event.event_account, event.event_type, event.raw,"
        " event.received_at, event.last_received_at, event.deliveries, event.endpoint_account,"
        " (SELECT json_agg(json_build_object('handling', handling.handling,"
        "   'handled_at', handling.handled_at, 'operation', handling.operation_id)"
        "   ORDER BY handling.id) FROM operations_eventhandling AS handling"
        "   WHERE handling.provider_event_id = event.event_id"
        "   AND handling.event_id = event.id)"
        " FROM (SELECT *, sum(octet_length(raw)) OVER (ORDER BY id) - octet_length(raw) AS before"
        "   FROM (SELECT * FROM {} WHERE id > %s ORDER BY id LIMIT %s) AS next) AS event"
        " WHERE event.before < %s ORDER BY event.id"
    ).format(_table(part))
    last = -1
    while True:
        with connection.cursor() as cursor:
            cursor.execute(statement, [last, _AT_ONCE, _BYTES_AT_ONCE])
            rows = cursor.fetchall()
        for row in rows:
            kept = {
                "id": row[1],
                "account": row[2],
                "type": row[3],
                "received_at": row[5].isoformat(),
                "last_received_at": row[6].isoformat(),
                "deliveries": row[7],
                "endpoint_account": row[8],
                "handlings": json.loads(row[9]) if isinstance(row[9], str) else row[9] or [],
                "raw": base64.b64encode(row[4]).decode(),
            }
            yield json.dumps(kept).encode() + b"\n"
        if not rows:
            return
        last = rows[-1][0]


def _parts() -> list[Part]:
    """All partitions, the oldest month first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT child.relname FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid"
            " WHERE inhparent = 'operations_webhookevent'::regclass ORDER BY child.relname"
        )
        names = [name for (name,) in cursor.fetchall()]
    found = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is not None:
            year, month = match.groups()
            found.append(
                Part(name, datetime(int(year), int(month), 1, tzinfo=UTC) if year else None)
            )
    return found


def _count(part: Part) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(_table(part)))
        return int(cursor.fetchone()[0])


def _table(part: Part) -> sql.Identifier:
    return sql.Identifier(part.table)


def _first_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
