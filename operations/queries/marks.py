"""A few numbers that differ when what a page shows may differ. One query each at any size."""

from typing import Any
from uuid import UUID

from django.db import connection

from operations.queries.figures import COUNT_CAP
from operations.queries.stretches import View

# What needs a person, as one number: which operations, how far each has come, and who works on
# it. The index `operation_waiting_by_age` holds no others. What waits for a second person is a
# proposal.
_NEEDY = f"""
SELECT count(*), bit_xor(hashtextextended(
        concat_ws(' ', id, revision, lookups_made, next_check_at, holder, held), 0)),
    (SELECT max(id) FROM operations_proposal),
    (SELECT count(*) FROM operations_proposal WHERE state = 'waiting')
FROM (
    SELECT id, revision, lookups_made, next_check_at, holder, claim.expires_at > now() AS held
    FROM operations_operation LEFT JOIN operations_claim AS claim ON claim.operation_id = id
    WHERE needs_person_since IS NOT NULL
    LIMIT {COUNT_CAP + 1}
) AS needy
"""  # noqa: S608 - our own text
# Nothing changes about an operation without a request, evidence or an entry in the audit trail.
_WRITTEN = """
SELECT (SELECT max(id) FROM operations_request),
    (SELECT max(id) FROM operations_evidence),
    (SELECT max(id) FROM operations_auditentry)
"""


def queue_mark(view: View) -> tuple[Any, ...]:
    """Differs when a list of this view may differ, whatever its filters and its page."""
    any_status = view in (View.ALL, View.MINE)
    found = _read(_WRITTEN if any_status else _NEEDY)
    if found[0] == COUNT_CAP + 1 and not any_status:
        found += _read(_WRITTEN)
    return found


# Counted, as these tables only grow: for the newest id alone the planner might walk all ids.
_OPERATION = """
SELECT operation.revision, operation.lookups_made, operation.next_check_at,
    (SELECT sum(sibling.revision) FROM operations_operation AS sibling
        WHERE sibling.payment_id = operation.payment_id),
    (SELECT count(*) FROM operations_request WHERE operation_id = operation.id),
    (SELECT count(*) FROM operations_attempt WHERE operation_id = operation.id),
    (SELECT count(finished_at) FROM operations_attempt WHERE operation_id = operation.id),
    (SELECT count(*) FROM operations_evidence WHERE operation_id = operation.id),
    (SELECT count(*) FROM operations_eventhandling WHERE operation_id = operation.id),
    (SELECT count(*) FROM operations_auditentry WHERE chain = operation.id::text),
    (SELECT max(refund.last_seen_at) FROM operations_providerrefund AS refund
        JOIN operations_payment AS payment ON payment.id = operation.payment_id
        WHERE refund.account_id = operation.account_id AND refund.charge = payment.charge)
FROM operations_operation AS operation WHERE operation.id = %s
"""


def operation_mark(operation_id: UUID) -> tuple[Any, ...]:
    """Differs when the page of this operation may differ. Empty when there is none."""
    return _read(_OPERATION, operation_id)


def _read(sql: str, *values: UUID) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return tuple(cursor.fetchone() or ())
