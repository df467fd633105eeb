"""Bundling: all that is recorded of one operation, signed, to be given away. Audited first."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.template.loader import render_to_string

from operations import bundles
from operations.domain.audit import Actor
from operations.queries.dossier import Dossier, read_dossier
from operations.queries.records import as_json, audit_records, record, records
from operations.queries.timeline import timeline
from operations.services.disclosing import note_disclosure
from operations.services.engine import Engine
from operations.services.sealing import signing_key


class UnknownOperation(Exception):
    """There is no operation with this id."""


class Bundle(NamedTuple):
    """A file's name and its bytes."""

    name: str
    content: bytes


def bundle_of(*, engine: Engine, operation_id: UUID, actor: Actor) -> Bundle:
    """Make the bundle of an operation as it stands. Raises UnknownOperation."""
    now = engine.clock()
    dossier = _as_of_one_moment(operation_id)
    if dossier is None:
        raise UnknownOperation
    note_disclosure(
        engine=engine,
        actor=actor,
        action="bundle_made",
        operation_id=operation_id,
        what={"audit_entries": len(dossier.audit)},
    )
    files = {
        "index.html": _page(dossier, now).encode(errors="replace"),
        "operation.json": as_json(records(dossier)),
        bundles.AUDIT: as_json(audit_records(dossier.audit)),
        **_events(dossier),
    }
    about = {
        "operation": str(operation_id),
        "made_at": now.isoformat(),
        "environment": engine.environment,
    }
    content = bundles.pack(files, about=about, key=signing_key())
    return Bundle(f"reconcile-{operation_id}.zip", content)


def _page(dossier: Dossier, now: datetime) -> str:
    """The same for people, complete in itself: it loads nothing and runs nothing."""
    context = {
        "dossier": dossier,
        "operation": dossier.operation,
        "events": timeline(dossier),
        "made_at": now,
        "now": now,
    }
    return render_to_string("operations/bundle.html", context)


def _as_of_one_moment(operation_id: UUID) -> Dossier | None:
    """All lists of a bundle fit each other: nothing that is written meanwhile is in one of them."""
    if connection.in_atomic_block:
        return read_dossier(operation_id)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return read_dossier(operation_id)


def _events(dossier: Dossier) -> dict[str, bytes]:
    """The webhooks as they came, secrets masked, one file each. The names are ours."""
    events = {row.event.pk: row.event for row in dossier.events if row.event}
    events |= {row.event.pk: row.event for row in dossier.evidence if row.event}
    return {f"events/{pk}.json": as_json(record(event)) for pk, event in sorted(events.items())}
