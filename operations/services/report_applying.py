"""Applying a report: each of its lines through the same door as every other evidence, once.

What became of a line is written in the transaction that applies it, so a worker that is killed
leaves no line half done and none is done twice.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog
from psycopg.types.numeric import Int8

from operations.domain.answers import RefundFacts
from operations.domain.audit import Actor, ActorKind
from operations.domain.report_preview import Preview
from operations.models import collecting
from operations.models.report_file import ReportFile, ReportRow, ReportState, RowResult
from operations.models.statements import build, columns, run
from operations.queries.reports import Foreseen, count_results, foresee
from operations.services.engine import Engine
from operations.services.report_matching import Line, Told, take_lines
from operations.services.report_reading import LEASE_S, claim_report

log = structlog.get_logger(__name__)

#: How many lines are applied in one transaction.
_BATCH = 500
#: A line that has no result yet, and the refund that it tells of.
_Waiting = tuple[ReportRow, RefundFacts]


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
    after = 0
    while rows := _waiting(report, after) or _waiting(report):
        done = _apply_batch(engine, report, rows)
        if not any(done.values()):
            # Somebody else holds every one of them.
            return False
        after = rows[-1].line
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


def _waiting(report: ReportFile, after: int = 0) -> list[ReportRow]:
    """The next lines. `after`: where to go on, so that those that are done are not read over."""
    rows = run(_WAITING, [Int8(report.pk), Int8(after), Int8(_BATCH)])
    return [build(ReportRow, row) for row in rows]


_WAITING = f"""
SELECT {columns(ReportRow, "line")} FROM operations_reportrow AS line
WHERE report_id = $1 AND result = '' AND line.line > $2 ORDER BY line.line LIMIT $3
"""  # noqa: S608 - columns of our own table


def _apply_batch(engine: Engine, report: ReportFile, rows: Sequence[ReportRow]) -> Counter[str]:
    """What each line came to: those that say nothing new are marked, the others are applied."""
    refunds = [facts_of(row) for row in rows]
    foreseen = foresee(report.account, refunds, environment=engine.environment)
    quiet: list[tuple[ReportRow, Foreseen]] = []
    telling: list[_Waiting] = []
    for row, refund, seen in zip(rows, refunds, foreseen, strict=True):
        if seen.preview is Preview.NOTHING_NEW:
            quiet.append((row, seen))
        else:
            telling.append((row, refund))
    done: Counter[str] = Counter({RowResult.NO_CHANGE: _mark_quiet(engine, quiet)})
    if telling:
        done += _apply_or_fail(engine, report, telling)
    return done


def _mark_quiet(engine: Engine, quiet: Sequence[tuple[ReportRow, Foreseen]]) -> int:
    if not quiet:
        return 0
    values = [
        [row.pk for row, _ in quiet],
        [seen.operation_id for _, seen in quiet],
        engine.clock(),
    ]
    return len(run(_MARK, values))


_MARK = f"""
UPDATE operations_reportrow AS line
SET result = '{RowResult.NO_CHANGE}', operation_id = told.operation_id, applied_at = $3
FROM unnest($1::bigint[], $2::uuid[]) AS told (id, operation_id)
WHERE line.id = told.id AND line.result = '' RETURNING 1
"""  # noqa: S608 - a constant


def _apply_or_fail(engine: Engine, report: ReportFile, rows: Sequence[_Waiting]) -> Counter[str]:
    """One transaction for these lines; when it fails it is halved, down to the line to blame."""
    try:
        return _apply(engine, report, rows)
    except Exception as error:
        if len(rows) > 1:
            middle = len(rows) // 2
            first = _apply_or_fail(engine, report, rows[:middle])
            return first + _apply_or_fail(engine, report, rows[middle:])
        row, _ = rows[0]
        log.exception("report_line_not_applied", report=report.pk, line=row.line)
        failed = ReportRow.objects.filter(pk=row.pk, result=RowResult.WAITING).update(
            result=RowResult.FAILED,
            problem=f"{type(error).__name__}: {error}"[:500],
            applied_at=engine.clock(),
        )
        return Counter({RowResult.FAILED: failed})


def _apply(engine: Engine, report: ReportFile, rows: Sequence[_Waiting]) -> Counter[str]:
    actor, counts = _actor(report), Counter[str]()
    with collecting.collecting(in_groups=True):
        held = {pk for (pk,) in run(_HOLD, [[row.pk for row, _ in rows]])}
        # All else of a line is frozen: it is as it was read.
        free = [(row, refund) for row, refund in rows if row.pk in held]
        if not free:
            return counts
        lines = [Line(refund, _told(report, row, actor)) for row, refund in free]
        taken = take_lines(engine=engine, account=report.account, lines=lines)
        now = engine.clock()
        for (row, _), line in zip(free, taken, strict=True):
            row.result, row.operation_id, row.applied_at = line.result, line.operation_id, now
            collecting.update(row, ["result", "operation_id", "applied_at"])
            counts[line.result] += 1
    return counts


# What another worker is just applying is left to it.
_HOLD = """
SELECT id FROM operations_reportrow WHERE id = ANY($1) AND result = ''
ORDER BY line FOR NO KEY UPDATE SKIP LOCKED
"""


def _actor(report: ReportFile) -> Actor:
    given = report.applied_by or {}
    return Actor(
        kind=ActorKind(given["kind"]),
        id=given["id"],
        name=given["name"],
        address=given["address"],
    )


def _told(report: ReportFile, row: ReportRow, actor: Actor) -> Told:
    return Told(
        summary=f"Report {report.name}, line {row.line}: refund {row.refund_id} is {row.status}.",
        actor=actor,
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
