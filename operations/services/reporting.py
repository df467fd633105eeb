"""Importing the provider's refund export: receive the file, have it read, then have it applied.

A file is looked at before anything is done (`report_reading`); a person lets it be applied
(`report_applying`). The same file, mapped the same way, is one import however often it is given.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from django.db import transaction
from django.db.models import Q

from operations.domain.audit import Actor
from operations.domain.report_columns import ColumnMapping
from operations.domain.sentences import Refusal, gettext_noop, say
from operations.models import Account, AuditEntry, collecting
from operations.models.report_file import (
    ReportFile,
    ReportPiece,
    ReportState,
    RowResult,
)
from operations.providers.storable import storable_text
from operations.services.engine import Engine

_PIECE = 2**20


class ReportRefused(Refusal):
    """The file was not taken, or can't be applied now; nothing was changed. `str` says why."""


class GivenFile(Protocol):
    """A file that can be read twice."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes."""

    def seek(self, place: int, /) -> object:
        """Go to this place."""


def receive_report(
    *,
    engine: Engine,
    account: Account,
    name: str,
    file: GivenFile | BinaryIO,
    mapping: ColumnMapping,
    most_bytes: int,
    actor: Actor,
) -> ReportFile:
    """Keep a file to be read, or answer the import that this very file already is.

    Raises ReportRefused.
    """
    content_hash, size = _measure(file, mapping, most_bytes)
    if not size:
        raise ReportRefused(say("The file is empty."))
    with transaction.atomic():
        # Two uploads of one file at once: the second waits here, and finds the first.
        Account.objects.select_for_update(no_key=True).get(pk=account.pk)
        known = (
            ReportFile.objects.filter(account=account, content_hash=content_hash)
            .exclude(state=ReportState.REFUSED)
            .first()
        )
        if known is not None:
            return known
        return _keep(engine, account, name, file, mapping, content_hash, size, actor)


def _measure(
    file: GivenFile | BinaryIO, mapping: ColumnMapping, most_bytes: int
) -> tuple[str, int]:
    digest = hashlib.sha256(json.dumps(mapping.as_json(), sort_keys=True).encode() + b"\n")
    size = 0
    for piece in _pieces(file):
        digest.update(piece)
        size += len(piece)
        if size > most_bytes:
            raise ReportRefused(
                say(
                    "The file is larger than {size} MiB (RECONCILE_REPORT_MAX_MB). "
                    "Split it, or export fewer columns.",
                    size=most_bytes // 2**20,
                )
            )
    return digest.hexdigest(), size


def _keep(
    engine: Engine,
    account: Account,
    name: str,
    file: GivenFile | BinaryIO,
    mapping: ColumnMapping,
    content_hash: str,
    size: int,
    actor: Actor,
) -> ReportFile:
    now = engine.clock()
    report = ReportFile.objects.create(
        account=account,
        name=storable_text(name)[:255] or "report.csv",
        content_hash=content_hash,
        size_bytes=size,
        mapping=mapping.as_json(),
        uploaded_by=actor.name[:255],
        uploaded_at=now,
    )
    for number, piece in enumerate(_pieces(file)):
        # Beside the text, not in it: the connection remembers the texts of a hundred statements.
        collecting.insert(ReportPiece(report=report, number=number, data=piece))
    _audit(engine, report, "report_uploaded", actor)
    return report


def _pieces(file: GivenFile | BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    return iter(lambda: file.read(_PIECE), b"")


@transaction.atomic
def let_apply(*, engine: Engine, report_id: int, actor: Actor) -> ReportFile:
    """Let a report that was read be applied; again, to try the lines that failed once more.

    Raises ReportRefused.
    """
    report = ReportFile.objects.select_for_update(no_key=True).get(pk=report_id)
    failed = report.results.get(RowResult.FAILED, 0)
    is_again = report.state == ReportState.APPLIED and failed
    if report.state != ReportState.READ and not is_again:
        raise ReportRefused(say(_WHY_NOT[ReportState(report.state)]))
    if is_again:
        again = report.lines.filter(result=RowResult.FAILED)
        again.update(result=RowResult.WAITING, problem="", applied_at=None)
        report.applied_rows -= failed
        report.results = {
            name: count for name, count in report.results.items() if name != RowResult.FAILED
        }
    before = report.state
    report.state = ReportState.APPLYING
    report.applied_at = None
    report.apply_asked_at = engine.clock()
    report.applied_by = {
        "kind": str(actor.kind),
        "id": actor.id,
        "name": actor.name,
        "address": actor.address,
    }
    report.save(
        update_fields=[
            *("state", "applied_at", "apply_asked_at", "applied_by", "applied_rows", "results")
        ]
    )
    _audit(engine, report, "report_applied", actor, before=before)
    return report


_WHY_NOT = {
    ReportState.READING: gettext_noop(
        "The report is still being read. Look at what it would do first."
    ),
    ReportState.REFUSED: gettext_noop("The report can't be read, so there is nothing to apply."),
    ReportState.APPLYING: gettext_noop("The report is being applied already."),
    ReportState.APPLIED: gettext_noop("The report was applied already. No line is applied twice."),
}


def reports_left_lying(*, engine: Engine) -> list[int]:
    """Reports that are to be read or applied and that nobody works on."""
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=engine.clock())
    rows = ReportFile.objects.filter(free, state__in=[ReportState.READING, ReportState.APPLYING])
    return list(rows.order_by("pk").values_list("pk", flat=True)[:20])


def _audit(
    engine: Engine, report: ReportFile, action: str, actor: Actor, *, before: str = ""
) -> None:
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action=action,
        now=engine.clock(),
        before={"state": before} if before else {},
        after={
            "report": report.pk,
            "file": report.name,
            "account": report.account.name,
            "state": str(report.state),
            "rows": report.rows,
            "content_hash": report.content_hash,
        },
        reason=f"Report {report.name}"[:500],
    )
