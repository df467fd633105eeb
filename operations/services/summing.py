"""Summing up: what happened in each hour, counted anew for the hours that changed.

An hour is counted as a whole from the operations, so running twice changes nothing, and counting
every hour gives the same rows as counting only those that changed.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from operations.domain.durations import LAST_BUCKET, PER_DOUBLING
from operations.domain.refund_state import RefundStatus, counts_as_refunded
from operations.models import HourToSum, Measure, SummingState
from operations.services.engine import Engine

#: Entries this young are read again by the next run: an older one may be committed after them.
GRACE = timedelta(minutes=5)

#: The predicate of the index `audit_about_unknown`.
_ABOUT_UNKNOWN = """((entry.before -> 'status') = '"unknown"'::jsonb
    OR (entry.after -> 'status') = '"unknown"'::jsonb)"""

_MARK_CHANGED = f"""
WITH written AS (
    SELECT entry.operation_id, CASE WHEN {_ABOUT_UNKNOWN} THEN entry.at END AS at
    FROM operations_auditentry AS entry
    WHERE entry.id > %(audit_entry)s AND entry.operation_id IS NOT NULL
), touched AS (
    SELECT operation_id FROM written
    UNION
    SELECT operation_id FROM operations_evidence WHERE id > %(evidence)s
)
INSERT INTO operations_hourtosum (hour)
SELECT DISTINCT date_trunc('hour', moment, 'UTC') FROM (
    SELECT operation.created_at AS moment
    FROM touched JOIN operations_operation AS operation ON operation.id = touched.operation_id
    UNION SELECT at FROM written WHERE at IS NOT NULL
) AS moments
ON CONFLICT DO NOTHING
"""  # noqa: S608 - our own text

_MARK_ALL = f"""
INSERT INTO operations_hourtosum (hour)
SELECT DISTINCT date_trunc('hour', moment, 'UTC') FROM (
    SELECT created_at AS moment FROM operations_operation
    UNION SELECT entry.at FROM operations_auditentry AS entry WHERE {_ABOUT_UNKNOWN}
    UNION SELECT hour FROM operations_hourcount
) AS moments
ON CONFLICT DO NOTHING
"""  # noqa: S608 - our own text

_ADVANCE = """
SELECT
    (SELECT max(id) FROM operations_auditentry WHERE id > %(audit_entry)s AND at < %(before)s),
    (SELECT max(id) FROM operations_evidence WHERE id > %(evidence)s AND recorded_at < %(before)s)
"""

_COUNT_HOUR = f"""
INSERT INTO operations_hourcount (hour, account_id, agent_id, reason, measure, bucket, count)
WITH opened AS (
    SELECT operation.account_id, operation.opened_by_id, operation.attempts_made AS sends,
        (SELECT count(*) FROM operations_providerrefund AS refund
         WHERE refund.operation_id = operation.id AND refund.status <> ALL (%(not_refunded)s)
        ) AS refunds
    FROM operations_operation AS operation
    WHERE operation.created_at >= %(hour)s AND operation.created_at < %(end)s
), entry AS (
    SELECT entry.chain, entry.number, entry.at, operation.account_id, operation.opened_by_id,
        entry.before ->> 'status' AS before, entry.after ->> 'status' AS after,
        entry.after ->> 'unknown_reason' AS reason_after
    FROM operations_auditentry AS entry
    JOIN operations_operation AS operation ON operation.id = entry.operation_id
    WHERE {_ABOUT_UNKNOWN} AND entry.at >= %(hour)s AND entry.at < %(end)s
), resolved AS (
    SELECT entry.account_id, entry.opened_by_id, since.reason,
        greatest(1, extract(epoch FROM entry.at - since.at))::numeric AS seconds
    FROM entry CROSS JOIN LATERAL (
        SELECT became.at, became.after ->> 'unknown_reason' AS reason
        FROM operations_auditentry AS became
        WHERE became.chain = entry.chain AND became.number < entry.number
            AND became.after ->> 'status' = 'unknown'
            AND became.before ->> 'status' IS DISTINCT FROM 'unknown'
        ORDER BY became.number DESC LIMIT 1
    ) AS since
    WHERE entry.before = 'unknown' AND entry.after <> 'unknown'
)
SELECT %(hour)s, account_id, opened_by_id, '', '{Measure.SENDS}', sends, count(*)
FROM opened GROUP BY account_id, opened_by_id, sends
UNION ALL
SELECT %(hour)s, account_id, opened_by_id, '', '{Measure.REFUNDS}', refunds, count(*)
FROM opened GROUP BY account_id, opened_by_id, refunds
UNION ALL
SELECT %(hour)s, account_id, opened_by_id, reason_after, '{Measure.UNKNOWN}', 0, count(*)
FROM entry WHERE after = 'unknown' AND before IS DISTINCT FROM 'unknown'
GROUP BY account_id, opened_by_id, reason_after
UNION ALL
SELECT %(hour)s, account_id, opened_by_id, reason, '{Measure.RESOLVED}', bucket, count(*)
FROM (SELECT *, least({LAST_BUCKET}, floor({PER_DOUBLING} * log(2, seconds)))::int AS bucket
    FROM resolved) AS timed
GROUP BY account_id, opened_by_id, reason, bucket
"""  # noqa: S608 - our own text


def mark_changed_hours(*, engine: Engine) -> None:
    """Note the hours of every operation that something was written about since the last time."""
    before = engine.clock() - GRACE
    with transaction.atomic(), connection.cursor() as cursor:
        SummingState.objects.get_or_create(pk=1)
        state = SummingState.objects.select_for_update().get(pk=1)
        values = {"audit_entry": state.audit_entry, "evidence": state.evidence}
        if state.summed_at is None:
            cursor.execute(_MARK_ALL)
        else:
            cursor.execute(_MARK_CHANGED, values)
        cursor.execute(_ADVANCE, {**values, "before": before})
        audit_entry, evidence = cursor.fetchone()
        state.audit_entry = max(state.audit_entry, audit_entry or 0)
        state.evidence = max(state.evidence, evidence or 0)
        state.summed_at = engine.clock()
        state.save()


def mark_every_hour() -> None:
    """Note every hour in which anything happened, for counting all anew."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_MARK_ALL)


@transaction.atomic
def sum_next_hour() -> bool:
    """Count the newest of the noted hours anew; False when there is none to count.

    Two runs at once count different hours: one that somebody counts is passed over.
    """
    noted = HourToSum.objects.select_for_update(skip_locked=True).order_by("-hour").first()
    if noted is None:
        return False
    _count(noted.hour)
    noted.delete()
    return True


def _count(hour: datetime) -> None:
    values: dict[str, Any] = {
        "hour": hour,
        "end": hour + timedelta(hours=1),
        "not_refunded": [status for status in RefundStatus if not counts_as_refunded(status)],
    }
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM operations_hourcount WHERE hour = %(hour)s", values)
        cursor.execute(_COUNT_HOUR, values)
