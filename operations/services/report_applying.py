"""Applying a report: each of its lines through the same door as every other evidence, once.

What became of a line is written in the transaction that applies it, so a worker that is killed
leaves no line half done and none is done twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from uuid import UUID

import structlog

from operations.domain.answers import RefundFacts
from operations.domain.audit import Actor, ActorKind
from operations.domain.report_preview import Preview
from operations.models import collecting
from operations.models.report_file import ReportFile, ReportRow, ReportState, RowResult
from operations.queries.reports import Foreseen, count_results, foresee
from operations.services.engine import Engine
from operations.services.report_matching import Told, see_lines, take_line
from operations.services.report_reading import LEASE_S, claim_report

log = structlog.get_logger(__name__)

_BATCH = 500
#: How many refunds without an operation are kept in one transaction.
_TOGETHER = 500


def apply_report(
    *,
    engine: Engine,
    report_id: int,
    is_over: Callable[[], bool],
    say: Callable[[ReportFile], None] = lambda report: None,
) -> bool:
    """Apply on until the end, or until `is_over` after a batch. True when there is more to do.

    `say` is told after each batch how far it is. Harmless when run by two at once.
    """
    report = claim_report(engine=engine, report_id=report_id, state=ReportState.APPLYING)
    if report is None:
        return False
    # What a worker that was killed had not counted yet is counted here.
    _count(report, count_results(report))
    while rows := _waiting(report):
        done = _apply_batch(engine, report, rows)
        if not any(done.values()):
            # Somebody else holds every one of them.
            return False
        _count(report, Counter(report.results) + done)
        ReportFile.objects.filter(pk=report.pk).update(
            claimed_until=engine.clock() + timedelta(seconds=LEASE_S)
        )
        say(report)
        if is_over():
            ReportFile.objects.filter(pk=report.pk).update(claimed_until=None)
            return True
    _finish(engine, report)
    return False


def _waiting(report: ReportFile) -> list[ReportRow]:
    rows = ReportRow.objects.filter(report=report, result=RowResult.WAITING)
    return list(rows.order_by("line")[:_BATCH])


def _apply_batch(engine: Engine, report: ReportFile, rows: Sequence[ReportRow]) -> Counter[str]:
    """What each line came to: those that say nothing new in one statement, the others in turn."""
    refunds = [facts_of(row) for row in rows]
    foreseen = foresee(report.account, refunds, environment=engine.environment)
    quiet: list[tuple[ReportRow, Foreseen]] = []
    foreign: list[ReportRow] = []
    ours: list[ReportRow] = []
    for row, seen in zip(rows, foreseen, strict=True):
        if seen.preview is Preview.NOTHING_NEW:
            quiet.append((row, seen))
        elif seen.operation_id is None:
            foreign.append(row)
        else:
            ours.append(row)
    done: Counter[str] = Counter()
    done[RowResult.NO_CHANGE] += _mark_quiet(engine, quiet)
    # By id, as everywhere: two that keep the same refunds never wait for each other.
    foreign.sort(key=lambda row: row.refund_id)
    for start in range(0, len(foreign), _TOGETHER):
        done += _apply_or_fail(engine, report, foreign[start : start + _TOGETHER])
    for row in ours:
        done += _apply_or_fail(engine, report, [row])
    return done


def _mark_quiet(engine: Engine, quiet: Sequence[tuple[ReportRow, Foreseen]]) -> int:
    by_operation: dict[UUID | None, list[int]] = {}
    for row, seen in quiet:
        by_operation.setdefault(seen.operation_id, []).append(row.pk)
    return sum(
        ReportRow.objects.filter(pk__in=ids, result=RowResult.WAITING).update(
            result=RowResult.NO_CHANGE, operation_id=operation_id, applied_at=engine.clock()
        )
        for operation_id, ids in by_operation.items()
    )


def _apply_or_fail(engine: Engine, report: ReportFile, rows: Sequence[ReportRow]) -> Counter[str]:
    """One transaction for these lines. A line that can't be applied delays no other."""
    try:
        return _apply(engine, report, rows)
    except Exception as error:
        if len(rows) > 1:
            return sum(
                (_apply_or_fail(engine, report, [row]) for row in rows), start=Counter[str]()
            )
        log.exception("report_line_not_applied", report=report.pk, line=rows[0].line)
        failed = ReportRow.objects.filter(pk=rows[0].pk, result=RowResult.WAITING).update(
            result=RowResult.FAILED,
            problem=f"{type(error).__name__}: {error}"[:500],
            applied_at=engine.clock(),
        )
        return Counter({RowResult.FAILED: failed})


def _apply(engine: Engine, report: ReportFile, rows: Iterable[ReportRow]) -> Counter[str]:
    ids: dict[tuple[RowResult, UUID | None], list[int]] = {}
    with collecting.collecting():
        free = list(
            ReportRow.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
            .filter(pk__in=[row.pk for row in rows], result=RowResult.WAITING)
            .order_by("refund_id", "line")
        )
        told = {row.pk: _told(report, row) for row in free}
        if len(free) > 1:
            see_lines(
                engine=engine,
                account=report.account,
                lines=[(facts_of(row), told[row.pk]) for row in free],
            )
        for row in free:
            taken = take_line(
                engine=engine, account=report.account, refund=facts_of(row), told=told[row.pk]
            )
            ids.setdefault((taken.result, taken.operation_id), []).append(row.pk)
        for (result, operation_id), done in ids.items():
            ReportRow.objects.filter(pk__in=done).update(
                result=result, operation_id=operation_id, applied_at=engine.clock()
            )
    counts: Counter[str] = Counter()
    for (result, _), done in ids.items():
        counts[result] += len(done)
    return counts


def _told(report: ReportFile, row: ReportRow) -> Told:
    given = report.applied_by or {}
    return Told(
        summary=f"Report {report.name}, line {row.line}: refund {row.refund_id} is {row.status}.",
        actor=Actor(
            kind=ActorKind(given["kind"]),
            id=given["id"],
            name=given["name"],
            address=given["address"],
        ),
        at=report.uploaded_at,
        facts={
            "report": report.pk,
            "file": report.name,
            "line": row.line,
            "content_hash": report.content_hash,
            "refund": row.refund_id,
        },
    )


def facts_of(row: ReportRow) -> RefundFacts:
    """The refund that a line tells of."""
    return RefundFacts(
        id=row.refund_id,
        status=row.status,
        amount=row.amount or 0,
        currency=row.currency,
        charge=row.charge,
        payment_intent=row.payment_intent,
        created=row.created,
        metadata=row.metadata,
        failure_reason=row.failure_reason,
    )


def _count(report: ReportFile, results: Counter[str] | dict[str, int]) -> None:
    report.results = {name: count for name, count in results.items() if count}
    report.applied_rows = min(report.rows, sum(report.results.values()))
    ReportFile.objects.filter(pk=report.pk).update(
        results=report.results, applied_rows=report.applied_rows
    )


def _finish(engine: Engine, report: ReportFile) -> None:
    _count(report, count_results(report))
    report.state = ReportState.APPLIED
    report.applied_at = engine.clock()
    ReportFile.objects.filter(pk=report.pk, state=ReportState.APPLYING).update(
        state=ReportState.APPLIED, applied_at=engine.clock(), claimed_until=None
    )
